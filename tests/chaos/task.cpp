// SPDX-License-Identifier: BSL-1.0
#include "chaos/task.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "chaos/asking.hpp"
#include "chaos/joint_section.hpp"
#include "chaos/loss_bell.hpp"
#include "chaos/pause.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

constexpr auto usual_reply = 10ms;  // what takes longer was perhaps sent twice
constexpr auto late_reply = 20ms;   // where a claim that counts from it is seen to be too long

const lock_name& named(const section& s, const std::string& name) {
  return *std::find_if(s.locks.begin(), s.locks.end(), [&](const lock_name& lock) { return lock.text == name; });
}

std::string names_of(const section& s) {
  std::string all;
  for (const auto& lock : s.locks) all += (all.empty() ? "" : " ") + lock.text;
  return all;
}

}  // namespace

struct task::hold {
  hold(std::uint64_t op, lock_name lock, mutex taken_by, const asio::any_io_executor& on)
      : operation(op), lock(std::move(lock)), m(std::move(taken_by)), bell(on) {}

  const std::uint64_t operation;
  const lock_name lock;
  mutex m;
  std::vector<lease> leases;
  loss_bell bell;
};

task::task(workplace& place, client& redis, std::size_t client_number, std::uint64_t seed, next_section draw)
    : place_(place), redis_(redis), dice_(seed), draw_(std::move(draw)),
      told_(place, redis.get_executor(), client_number) {}

asio::awaitable<void> task::run() {
  while (!place_.stopping) {
    const auto next = draw_(dice_);
    co_await pause(next.think);
    std::erase_if(abandoned_, [](const auto& h) { return h->bell.rung(); });
    co_await do_section(next);
  }
  for (const auto& h : abandoned_) drop(*h);
}

asio::awaitable<void> task::do_section(const section& s) {
  if (s.force_unlock) return break_lock(s);
  if (s.of == section::choice::all) return do_joint_section(place_, redis_, told_, dice_, self_, s);
  return s.as_body ? work_inside(s) : work_under(s);
}

asio::awaitable<void> task::break_lock(const section& s) {
  const auto operation = place_.next_operation();
  const auto& lock = s.locks.front();
  place_.log.write("force").add("op", operation).add("lock", lock.text);
  const auto broken = co_await as_result(mutex_of(redis_, lock, self_).force_unlock());
  if (broken)
    place_.log.write("forced").add("op", operation).add("broken", *broken);
  else
    place_.log.write("force_failed").add("op", operation).add("error", broken.error().message());
}

asio::awaitable<void> task::work_under(const section& s) {
  const auto operation = place_.next_operation();
  auto got = co_await acquire(s, operation);
  if (!got) co_return;
  const auto here = co_await asio::this_coro::executor;
  const auto& lock = named(s, got->name());
  const auto h = std::make_shared<hold>(operation, lock, mutex_of(redis_, lock, self_), here);
  h->leases.push_back(std::move(*got));
  told_.watch(operation, h->leases.front(), [h] { h->bell.ring(); });
  const auto counter = counter_of(h->leases.front(), s);
  if (lock.counted() && dice_.per_mille(100)) co_await check_count(*h);
  co_await reenter(*h, s);
  for (const auto& inner : s.nested) co_await work_under(inner);
  co_await linger(*h, s);
  told_.use_resource(operation, h->leases.front(), lock.by, counter);
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
  const auto& lock = s.locks.front();
  told_.asked(operation, lock.text, lock.by, s);
  const auto done = co_await as_result(with_lock(mutex_of(redis_, lock, self_), body, terms_of(s)));
  if (begun)
    told_.released(operation, 0, done);
  else
    told_.not_granted(operation, done.error());
}

asio::awaitable<void> task::work_as_body(std::uint64_t operation, lease& l, const section& s) {
  told_.granted(operation, l);
  const auto counter = counter_of(l, s);
  const auto end = asio::steady_timer::clock_type::now() + s.hold;
  try {
    while (end > asio::steady_timer::clock_type::now()) {
      co_await pause(look_every);
      told_.look(operation, l);
    }
    told_.use_resource(operation, l, s.locks.front().by, counter);
  } catch (const boost::system::system_error& stopped) {
    place_.log.write("lost").add("hold", operation).add("error", stopped.code().message());
    told_.releasing(operation, 0);
    throw;
  }
  told_.releasing(operation, 0);
}

asio::awaitable<result<std::optional<lease>>> task::ask_for(const section& s, std::function<void()> cancelling) {
  const auto& first = s.locks.front();
  if (first.by == lock_name::kind::permits) {
    several_permits wanted{redis_.expirable_semaphore(first.text, permits_in_all), s.permits};
    return ask(std::move(wanted), s, std::move(cancelling));
  }
  auto locks = mutexes_of(redis_, s.locks, self_);
  if (s.of == section::choice::any) return ask(any_of(std::move(locks)), s, std::move(cancelling));
  return ask(std::move(locks.front()), s, std::move(cancelling));
}

asio::awaitable<std::optional<lease>> task::acquire(const section& s, std::uint64_t operation) {
  const auto since = now();
  auto cancelling = [this, operation] { place_.log.write("cancel").add("op", operation); };
  told_.asked(operation, names_of(s), s.locks.front().by, s);
  auto got = co_await ask_for(s, cancelling);
  if (!got || !*got) {
    told_.not_granted(operation, got ? error_code() : got.error());
    co_return std::nullopt;
  }
  told_.granted(operation, **got);
  const bool waited_for_redis_alone = s.own || s.how == section::wait_mode::once;
  const bool late = waited_for_redis_alone && std::chrono::nanoseconds(now() - since) > late_reply;
  const auto& lock = named(s, (*got)->name());
  if (lock.has_key() && (late || dice_.per_mille(witnessed))) co_await told_.check_key(operation, **got, lock.by);
  co_return std::move(*got);
}

asio::awaitable<void> task::reenter(hold& h, const section& s) {
  for (unsigned i = 0; i < s.reentries; ++i) {
    const auto operation = place_.next_operation();
    const auto since = now();
    place_.log.write("reenter").add("op", operation).add("hold", h.operation);
    const bool reads_too = h.lock.by == lock_name::kind::writer && dice_.per_mille(500);
    const auto inner = reads_too ? mutex_of(redis_, {h.lock.text, lock_name::kind::reader}, self_) : h.m;
    auto got = co_await as_result(inner.lock(terms_of(s)));
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
    if (h.lock.counted() && (troubled || dice_.per_mille(300))) co_await check_count(h);
  }
}

// Nobody waits for a count, and the latest is told when the one before it is answered: by then the first question here
// is answered, or, where the server has forgotten the script, the second.
asio::awaitable<void> task::check_count(hold& h) {
  for (int unjudged = 0; unjudged < 2; ++unjudged)
    if (!co_await as_result(h.m.holder())) co_return;
  const auto since = now();
  const auto asked = co_await as_result(h.m.holder());
  if (!asked) co_return;
  const auto id = h.leases.front().id();
  const bool its = *asked && (*asked)->id == id.substr(0, id.find('/'));
  const auto got = its ? (*asked)->count : 0;
  place_.log.write("count").add("hold", h.operation).add("since", since).add("want", h.leases.size()).add("got", got);
}

asio::awaitable<void> task::linger(hold& h, const section& s) {
  const auto begin = asio::steady_timer::clock_type::now(), end = begin + s.hold;
  bool held = true, to_renew = s.renew_by_hand;
  while (held && end - asio::steady_timer::clock_type::now() > look_every) {
    co_await pause(look_every);
    held = told_.look(h.operation, h.leases.front());
    if (held && asio::steady_timer::clock_type::now() < begin + s.fed_for) feed(h);
    if (held && h.lock.has_key() && dice_.per_mille(witnessed))
      co_await told_.check_key(h.operation, h.leases.front(), h.lock.by);
    if (!std::exchange(to_renew, false)) continue;
    co_await renew(h);
  }
  if (held) co_await pause(std::chrono::duration_cast<microseconds>(end - asio::steady_timer::clock_type::now()));
  if (!told_.look(h.operation, h.leases.front())) co_await h.bell.wait();
}

asio::awaitable<void> task::renew(hold& h) {
  told_.renewing(h.operation);
  told_.renewed(h.operation, co_await as_result(h.leases.front().renew()));
}

void task::feed(hold& h) {
  h.leases.front().feed();
  place_.log.write("fed").add("hold", h.operation);
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
  if (released && s.own) co_await told_.check_gone(h->operation, h->m.name());
  if (s.end == section::ending::unlock_twice)
    told_.unlocked_again(h->operation, co_await as_result(h->leases.front().unlock()));
}

asio::awaitable<bool> task::unlock(hold& h, lease& l, std::size_t left) {
  told_.releasing(h.operation, left);
  const auto done = co_await as_result(l.unlock());
  told_.released(h.operation, left, done);
  co_return done.has_value();
}

std::optional<long long> task::counter_of(const lease& l, const section& s) {
  return s.counts ? std::optional(place_.resource.read_counter(l.name())) : std::nullopt;
}

}  // namespace holdfast::chaos
