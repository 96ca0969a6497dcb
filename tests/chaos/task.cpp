// SPDX-License-Identifier: BSL-1.0
#include "chaos/task.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using answer = result<std::optional<lease>>;

constexpr auto look_every = 20ms;
constexpr auto usual_reply = 10ms;  // what takes longer was perhaps sent twice
// Far longer than a loss may take to be signalled: the checker sees that it did not come.
constexpr auto patience_for_loss = 1500ms;

asio::awaitable<std::optional<lease>> ask(fenced_mutex m, section::patience how, milliseconds wait,
                                          lock_options terms) {
  if (how == section::patience::once) co_return co_await m.try_lock(terms);
  if (how == section::patience::bounded) co_return co_await m.try_lock_for(wait, terms);
  co_return co_await m.lock(terms);
}

/// Cancels what hangs on its slot, later. Shared with its alarm, which may have gone off just before the end.
struct stop_button {
  explicit stop_button(const asio::any_io_executor& on) : alarm(on) {}
  asio::cancellation_signal signal;
  asio::steady_timer alarm;
  bool over = false;
};

asio::awaitable<answer> ask_until(asio::awaitable<std::optional<lease>> asked, std::optional<milliseconds> after,
                                  history& log, std::uint64_t operation) {
  if (!after) co_return co_await as_result(std::move(asked));
  const auto here = co_await asio::this_coro::executor;
  const auto button = std::make_shared<stop_button>(here);
  button->alarm.expires_after(*after);
  auto press = [button, &log, operation](const error_code& stopped) {
    if (stopped || button->over) return;
    log.write("cancel").add("op", operation);
    button->signal.emit(asio::cancellation_type::terminal);
  };
  button->alarm.async_wait(press);
  auto token = asio::bind_cancellation_slot(button->signal.slot(), asio::use_awaitable);
  auto got = co_await as_result(asio::co_spawn(here, std::move(asked), token));
  button->over = true;
  button->alarm.cancel();
  co_return got;
}

asio::awaitable<void> pause(microseconds time) {
  if (time <= 0us) co_return;
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

lock_options terms_of(const section& s) {
  lock_options terms;
  terms.ttl = s.ttl;
  terms.renew = s.renewed;
  return terms;
}

}  // namespace

struct task::hold {
  hold(std::uint64_t op, fenced_mutex lock, const asio::any_io_executor& on)
      : operation(op), m(std::move(lock)), bell(on) {}

  const std::uint64_t operation;
  fenced_mutex m;
  std::vector<lease> leases;
  bool lost = false;
  asio::steady_timer bell;  // rung when it is lost
};

task::task(workplace& place, client& redis, std::size_t client_number, std::uint64_t seed)
    : place_(place), redis_(redis), client_number_(client_number), dice_(seed) {}

asio::awaitable<void> task::run() {
  while (!place_.stopping) {
    const auto next = draw_section(dice_);
    co_await pause(next.think);
    std::erase_if(abandoned_, [](const auto& h) { return h->lost; });
    if (next.force_unlock)
      co_await break_lock(next);
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
  const auto h =
      std::make_shared<hold>(operation, redis_.fenced_mutex(s.lock, self_), co_await asio::this_coro::executor);
  h->leases.push_back(std::move(*got));
  watch(h);
  const auto counter = s.counts ? place_.resource.read_counter(s.lock) : 0;
  if (dice_.per_mille(100)) co_await check_count(*h);
  co_await reenter(*h, s);
  co_await linger(*h, s);
  use_resource(*h, counter, s);
  co_await release(h, s);
}

asio::awaitable<std::optional<lease>> task::acquire(const section& s, std::uint64_t operation) {
  const auto m = redis_.fenced_mutex(s.lock, self_);
  const bool forever = s.how == section::patience::forever;
  {
    auto line = place_.log.write("acquire");
    line.add("op", operation).add("client", client_number_).add("lock", s.lock);
    line.add("ttl", s.ttl.count()).add("renewed", s.renewed).add("wait", forever ? -1 : s.wait.count());
  }
  auto asked = ask(m, s.how, s.wait, terms_of(s));
  auto got = co_await ask_until(std::move(asked), s.cancel, place_.log, operation);
  if (got.has_error()) {
    const bool cancelled = got.error() == asio::error::operation_aborted;
    place_.log.write(cancelled ? "cancelled" : "failed").add("op", operation).add("error", got.error().message());
    co_return std::nullopt;
  }
  if (!*got) {
    place_.log.write("busy").add("op", operation);
    co_return std::nullopt;
  }
  const auto seen = now();
  const auto valid = (*got)->valid_for();
  place_.log.write("acquired")
      .add("op", operation)
      .add("seen", seen)
      .add("valid", valid.count())
      .add("token", (*got)->token().value());
  co_return std::move(*got);
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
    place_.log.write("reentered").add("op", operation).add("token", h.leases.back().token().value());
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
bool task::look(hold& h) {
  const auto seen = now();
  const auto valid = h.leases.front().valid_for();
  const bool held = h.leases.front().held();
  place_.log.write("look").add("hold", h.operation).add("seen", seen).add("valid", valid.count()).add("held", held);
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
  const auto end = asio::steady_timer::clock_type::now() + s.hold;
  bool held = true, to_renew = s.renew_by_hand;
  while (held && end - asio::steady_timer::clock_type::now() > look_every) {
    co_await pause(look_every);
    held = look(h);
    if (!std::exchange(to_renew, false)) continue;
    const auto since = now();
    const auto renewed = co_await as_result(h.leases.front().renew());
    if (renewed) place_.log.write("renewed").add("hold", h.operation).add("since", since);
  }
  if (held) co_await pause(std::chrono::duration_cast<microseconds>(end - asio::steady_timer::clock_type::now()));
  if (look(h) || h.lost) co_return;
  h.bell.expires_after(patience_for_loss);
  co_await as_result(h.bell.async_wait(asio::use_awaitable));
}

// Without asking whether the lease is held: that is what the resource has to stand.
void task::use_resource(hold& h, long long counter, const section& s) {
  if (s.counts) {
    place_.resource.write_counter(s.lock, counter + 1);
    place_.log.write("update").add("hold", h.operation).add("wrote", counter + 1);
  }
  const auto token = h.leases.front().token().value();
  const auto said = place_.resource.write_register(s.lock, token);
  auto line = place_.log.write("write");
  line.add("hold", h.operation).add("token", token).add("number", said.number).add("accepted", said.accepted);
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
  co_await unlock(*h, h->leases.front(), 0);
  if (s.end != section::ending::unlock_twice) co_return;
  const auto again = co_await as_result(h->leases.front().unlock());
  place_.log.write("unlocked_again").add("hold", h->operation).add("error", again ? "none" : again.error().message());
}

asio::awaitable<void> task::unlock(hold& h, lease& l, std::size_t left) {
  place_.log.write("release").add("hold", h.operation).add("left", left);
  const auto done = co_await as_result(l.unlock());
  auto line = place_.log.write(done ? "released" : "release_failed");
  line.add("hold", h.operation).add("left", left);
  if (!done) line.add("error", done.error().message());
}

}  // namespace holdfast::chaos
