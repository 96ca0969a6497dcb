// SPDX-License-Identifier: BSL-1.0
#include "chaos/task.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "chaos/asking.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 20ms;
constexpr auto usual_reply = 10ms;  // what takes longer was perhaps sent twice
constexpr unsigned witnessed = 40;  // of a thousand grants, and of as many looks
constexpr auto late_reply = 20ms;   // where a claim that counts from it is seen to be too long
// Far longer than a loss may take to be signalled: the checker sees that it did not come.
constexpr auto patience_for_loss = 1500ms;

asio::awaitable<void> pause(microseconds time) {
  if (time <= 0us) co_return;
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

}  // namespace

struct task::hold {
  hold(std::uint64_t op, mutex lock, const asio::any_io_executor& on) : operation(op), m(std::move(lock)), bell(on) {}

  const std::uint64_t operation;
  mutex m;
  std::vector<lease> leases;
  bool lost = false;
  asio::steady_timer bell;  // rung when it is lost
};

task::task(workplace& place, client& redis, std::size_t client_number, std::uint64_t seed, next_section draw)
    : place_(place), redis_(redis), client_number_(client_number), dice_(seed), draw_(std::move(draw)),
      witness_(redis.get_executor(), place.server) {}

asio::awaitable<void> task::run() {
  while (!place_.stopping) {
    const auto next = draw_(dice_);
    co_await pause(next.think);
    std::erase_if(abandoned_, [](const auto& h) { return h->lost; });
    if (next.force_unlock)
      co_await break_lock(next);
    else if (next.as_body)
      co_await work_inside(next);
    else
      co_await work_under(next);
  }
  for (const auto& h : abandoned_) drop(*h);
}

asio::awaitable<void> task::break_lock(const section& s) {
  const auto operation = place_.next_operation();
  place_.log.write("force").add("op", operation).add("lock", s.lock);
  const auto broken = co_await as_result(redis_.fenced_mutex(s.lock).force_unlock());
  if (broken)
    place_.log.write("forced").add("op", operation).add("broken", *broken);
  else
    place_.log.write("force_failed").add("op", operation).add("error", broken.error().message());
}

asio::awaitable<void> task::work_under(const section& s) {
  const auto operation = place_.next_operation();
  auto got = co_await acquire(s, operation);
  if (!got) co_return;
  const auto h = std::make_shared<hold>(operation, mutex_of(s), co_await asio::this_coro::executor);
  h->leases.push_back(std::move(*got));
  watch(h);
  const auto counter = s.counts ? place_.resource.read_counter(s.lock) : 0;
  if (dice_.per_mille(100)) co_await check_count(*h);
  co_await reenter(*h, s);
  co_await linger(*h, s);
  use_resource(operation, h->leases.front(), counter, s);
  co_await release(h, s);
}

// The body is told of a loss by its cancellation: nobody else cancels it.
asio::awaitable<void> task::work_inside(const section& s) {
  const auto operation = place_.next_operation();
  bool begun = false;
  auto body = [this, &s, operation, &begun](lease& l) {
    begun = true;
    return work_as_body(operation, l, s);
  };
  tell_request(operation, s, true);
  const auto done = co_await as_result(with_lock(mutex_of(s), body, terms_of(s)));
  if (begun)
    tell_release(operation, 0, done);
  else
    place_.log.write("failed").add("op", operation).add("error", done.error().message());
}

asio::awaitable<void> task::work_as_body(std::uint64_t operation, lease& l, const section& s) {
  tell_grant(operation, l);
  const auto counter = s.counts ? place_.resource.read_counter(s.lock) : 0;
  const auto end = asio::steady_timer::clock_type::now() + s.hold;
  try {
    while (end > asio::steady_timer::clock_type::now()) {
      co_await pause(look_every);
      look(operation, l);
    }
    use_resource(operation, l, counter, s);
  } catch (const boost::system::system_error& stopped) {
    place_.log.write("lost").add("hold", operation).add("error", stopped.code().message());
    place_.log.write("release").add("hold", operation).add("left", 0);
    throw;
  }
  place_.log.write("release").add("hold", operation).add("left", 0);
}

mutex task::mutex_of(const section& s) const {
  switch (s.by) {
    case section::kind::fenced: return redis_.fenced_mutex(s.lock, self_);
    case section::kind::simple: return redis_.simple_mutex(s.lock, self_);
    case section::kind::plain: break;
  }
  return redis_.mutex(s.lock, self_);
}

void task::tell_request(std::uint64_t operation, const section& s, bool as_body) {
  const bool forever = s.how == section::patience::forever;
  auto line = place_.log.write("acquire");
  line.add("op", operation)
      .add("client", client_number_)
      .add("lock", s.lock)
      .add("fenced", s.by == section::kind::fenced);
  line.add("ttl", s.ttl.count()).add("renewed", s.renewed).add("wait", forever ? -1 : s.wait.count());
  if (s.max_hold) line.add("max_hold", s.max_hold->count());
  if (as_body) line.add("as_body", true);
}

void task::tell_grant(std::uint64_t operation, const lease& l) {
  const auto seen = now();
  const auto valid = l.valid_for();
  auto line = place_.log.write("acquired");
  line.add("op", operation).add("seen", seen).add("valid", valid.count());
  if (l.token()) line.add("token", *l.token());
}

asio::awaitable<std::optional<lease>> task::acquire(const section& s, std::uint64_t operation) {
  const auto since = now();
  tell_request(operation, s);
  auto got = co_await ask(mutex_of(s), s, place_.log, operation);
  if (got.has_error()) {
    const bool cancelled = got.error() == asio::error::operation_aborted;
    place_.log.write(cancelled ? "cancelled" : "failed").add("op", operation).add("error", got.error().message());
    co_return std::nullopt;
  }
  if (!*got) {
    place_.log.write("busy").add("op", operation);
    co_return std::nullopt;
  }
  tell_grant(operation, **got);
  const bool waited_for_redis_alone = s.own || s.how == section::patience::once;
  const bool late = waited_for_redis_alone && std::chrono::nanoseconds(now() - since) > late_reply;
  if (late || dice_.per_mille(witnessed)) co_await check_key(operation, **got);
  co_return std::move(*got);
}

/// Whether the key lives as long as its holder believes.
asio::awaitable<void> task::check_key(std::uint64_t operation, const lease& l) {
  const auto seen = now();
  const auto valid = l.valid_for();
  const auto ttl = co_await witness_.ttl(l.name());
  if (!ttl) co_return;
  place_.log.write("witness").add("hold", operation).add("seen", seen).add("valid", valid.count()).add("ttl", *ttl);
}

asio::awaitable<void> task::reenter(hold& h, const section& s) {
  for (unsigned i = 0; i < s.reentries; ++i) {
    const auto operation = place_.next_operation();
    const auto since = now();
    place_.log.write("reenter").add("op", operation).add("hold", h.operation);
    auto got = co_await as_result(h.m.lock(terms_of(s)));
    if (!got) {
      place_.log.write("reenter_failed").add("op", operation).add("error", got.error().message());
      co_return;
    }
    h.leases.push_back(std::move(*got));
    {
      auto line = place_.log.write("reentered");
      line.add("op", operation);
      if (const auto token = h.leases.back().token()) line.add("token", *token);
    }
    const bool troubled = std::chrono::nanoseconds(now() - since) > usual_reply;
    if (troubled || dice_.per_mille(300)) co_await check_count(h);
  }
}

asio::awaitable<void> task::check_count(hold& h) {
  const auto since = now();
  const auto got = co_await as_result(h.m.hold_count(self_));
  if (!got) co_return;
  place_.log.write("count").add("hold", h.operation).add("since", since).add("want", h.leases.size()).add("got", *got);
}

/// Looks at the lease as a program would that asks before it goes on.
bool task::look(std::uint64_t operation, const lease& l) {
  const auto seen = now();
  const auto valid = l.valid_for();
  const bool held = l.held();
  place_.log.write("look").add("hold", operation).add("seen", seen).add("valid", valid.count()).add("held", held);
  return held;
}

/// Writes down the loss when it is signalled. Ends by itself when the lease is released.
void task::watch(const std::shared_ptr<hold>& h) {
  auto listen = [](workplace& place, std::shared_ptr<hold> of) -> asio::awaitable<void> {
    const auto why = co_await as_result(of->leases.front().lost());
    if (!why) co_return;
    place.log.write("lost").add("hold", of->operation).add("error", why->message());
    of->lost = true;
    of->bell.cancel();
  };
  asio::co_spawn(h->bell.get_executor(), listen(place_, h), asio::detached);
}

asio::awaitable<void> task::linger(hold& h, const section& s) {
  const auto begin = asio::steady_timer::clock_type::now(), end = begin + s.hold;
  bool held = true, to_renew = s.renew_by_hand;
  while (held && end - asio::steady_timer::clock_type::now() > look_every) {
    co_await pause(look_every);
    held = look(h.operation, h.leases.front());
    if (held && asio::steady_timer::clock_type::now() < begin + s.fed_for) feed(h);
    if (held && dice_.per_mille(witnessed)) co_await check_key(h.operation, h.leases.front());
    if (!std::exchange(to_renew, false)) continue;
    co_await renew(h);
  }
  if (held) co_await pause(std::chrono::duration_cast<microseconds>(end - asio::steady_timer::clock_type::now()));
  if (look(h.operation, h.leases.front()) || h.lost) co_return;
  h.bell.expires_after(patience_for_loss);
  co_await as_result(h.bell.async_wait(asio::use_awaitable));
}

asio::awaitable<void> task::renew(hold& h) {
  place_.log.write("renew").add("hold", h.operation);
  const auto renewed = co_await as_result(h.leases.front().renew());
  auto line = place_.log.write(renewed ? "renewed" : "renew_failed");
  line.add("hold", h.operation);
  if (!renewed) line.add("error", renewed.error().message());
}

void task::feed(hold& h) {
  h.leases.front().feed();
  place_.log.write("fed").add("hold", h.operation);
}

// Without asking whether the lease is held: that is what the resource has to stand.
void task::use_resource(std::uint64_t operation, const lease& l, long long counter, const section& s) {
  if (s.counts) {
    place_.resource.write_counter(s.lock, counter + 1);
    place_.log.write("update").add("hold", operation).add("wrote", counter + 1);
  }
  const auto token = l.token();
  if (!token) return;
  const auto said = place_.resource.write_register(s.lock, *token);
  auto line = place_.log.write("write");
  line.add("hold", operation).add("token", *token).add("number", said.number).add("accepted", said.accepted);
}

void task::drop(hold& h) {
  place_.log.write("drop").add("hold", h.operation);
  h.leases.clear();
}

asio::awaitable<void> task::release(std::shared_ptr<hold> h, const section& s) {
  if (s.end == section::ending::drop) {
    drop(*h);
    co_return;
  }
  if (s.end == section::ending::abandon) {
    place_.log.write("abandon").add("hold", h->operation);
    abandoned_.push_back(h);
    self_ = owner();  // the one that forgot it holds it still: it would re-enter
    co_return;
  }
  while (h->leases.size() > 1) {
    auto last = std::move(h->leases.back());
    h->leases.pop_back();
    co_await unlock(*h, last, h->leases.size());
  }
  const bool released = co_await unlock(*h, h->leases.front(), 0);
  if (released && s.own) co_await check_gone(*h);
  if (s.end != section::ending::unlock_twice) co_return;
  const auto again = co_await as_result(h->leases.front().unlock());
  place_.log.write("unlocked_again").add("hold", h->operation).add("error", again ? "none" : again.error().message());
}

asio::awaitable<bool> task::unlock(hold& h, lease& l, std::size_t left) {
  place_.log.write("release").add("hold", h.operation).add("left", left);
  const auto done = co_await as_result(l.unlock());
  tell_release(h.operation, left, done);
  co_return done.has_value();
}

void task::tell_release(std::uint64_t operation, std::size_t left, const result<void>& done) {
  auto line = place_.log.write(done ? "released" : "release_failed");
  line.add("hold", operation).add("left", left);
  if (!done) line.add("error", done.error().message());
}

/// Of a lock that nobody else ever asks for.
asio::awaitable<void> task::check_gone(const hold& h) {
  const auto ttl = co_await witness_.ttl(h.m.name());
  if (ttl) place_.log.write("afterwards").add("hold", h.operation).add("ttl", *ttl);
}

}  // namespace holdfast::chaos
