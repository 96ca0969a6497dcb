// SPDX-License-Identifier: BSL-1.0
// A queue of all clients: who is served next, what a waiter that leaves or dies costs the others, and what stays.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using std::chrono::milliseconds;

namespace {

/// A call that can be cancelled.
struct cancellable_wait {
  cancellable_wait(client_side& w, asio::awaitable<lease> op) {
    asio::co_spawn(w.io, as_result(std::move(op)),
                   asio::bind_cancellation_slot(signal.slot(), [this](std::exception_ptr, result<lease> got) {
                     answer.emplace(std::move(got));
                   }));
  }
  asio::cancellation_signal signal;
  std::optional<result<lease>> answer;
};

struct fair_world : world {
  client first = make(), second = make(), third = make();

  static holdfast::fair_mutex of(const client& by) { return by.fair_mutex("f"); }
  static holdfast::fair_mutex of(const client& by, owner task) { return by.fair_mutex("f", task); }
  std::vector<std::string> queue() { return eye("LRANGE", "redisson_lock_queue:{f}", 0, -1).strings(); }
  void wait_for_places(std::size_t n) {
    until([&] { return queue().size() == n; });
  }
  /// Begins to wait, and returns when its place stands.
  std::unique_ptr<started<lease>> waiter(const client& by) {
    const auto before = queue().size();
    auto waiting = std::make_unique<started<lease>>(*this, of(by).lock());
    wait_for_places(before + 1);
    return waiting;
  }
  void check_nothing_is_left() {
    until([&] { return eye("DBSIZE") == 0; });
  }
};

}  // namespace

TEST_CASE_METHOD(fair_world, "callers of all clients are served in the order of their arrival") {
  auto held = run(of(first).lock());
  std::vector<std::unique_ptr<started<lease>>> waiting;
  for (const auto* by : {&second, &third, &second, &first, &third}) waiting.push_back(waiter(*by));
  CHECK(run(of(first).waiters()) == 5);
  run(held.unlock());
  for (std::size_t n = 0; n < waiting.size(); ++n) {
    until([&] { return waiting[n]->succeeded(); });
    for (std::size_t later = n + 1; later < waiting.size(); ++later) CHECK_FALSE(waiting[later]->answer);
    run(waiting[n]->answer->value().unlock());
  }
  CHECK(run(of(first).waiters()) == 0);
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_world, "a release takes the lock for the next waiter of its client, and sends no other command") {
  auto held = run(of(first).lock());
  auto one = waiter(first), two = waiter(first);
  run(held.unlock());
  until([&] { return one->succeeded(); });
  CHECK(eye("PUBSUB", "CHANNELS", "redisson_lock__channel:*").array().size() == 2);
  run(one->answer->value().unlock());
  until([&] { return two->succeeded(); });
  run(two->answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_world, "a waiter that leaves gives up its place, and nobody behind it overtakes others") {
  auto held = run(of(first).lock());
  std::optional<cancellable_wait> leaver(std::in_place, *this, of(second).lock());
  wait_for_places(1);
  auto other = waiter(third);
  auto behind = waiter(second);
  leaver->signal.emit(asio::cancellation_type::terminal);
  until([&] { return leaver->answer.has_value(); });
  wait_for_places(2);
  run(held.unlock());
  until([&] { return other->succeeded(); });
  CHECK_FALSE(behind->answer);
  run(other->answer->value().unlock());
  until([&] { return behind->succeeded(); });
  run(behind->answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_world, "the last waiter of a client that leaves takes its place along") {
  auto held = run(of(first).lock());
  SECTION("by its deadline") {
    const auto nothing = run(of(second).try_lock_for(200ms));
    CHECK_FALSE(nothing);
    until([&] { return queue().empty(); });
    run(held.unlock());
  }
  SECTION("by the end of its client") {
    auto waiting = waiter(second);
    run(second.shutdown(5s));
    until([&] { return waiting->answer.has_value(); });
    CHECK(queue().empty());
    run(held.unlock());
  }
  SECTION("by the drain of its client") {
    auto waiting = waiter(second);
    run(second.drain(5s));
    until([&] { return waiting->answer.has_value(); });
    CHECK(queue().empty());
    run(held.unlock());
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_world, "a client that drains lets its holder finish") {
  auto held = run(of(first).lock());
  auto waiting = waiter(second);
  started<void> drained(*this, first.drain(60s));
  pass(20ms);
  CHECK(held.held());
  run(held.unlock());
  until([&] { return drained.answer.has_value() && waiting->succeeded(); });
  run(waiting->answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_world, "more than sixteen waiters of a client are all served, in their order") {
  auto held = run(of(first).lock());
  std::deque<started<lease>> waiting;
  for (int n = 0; n < 20; ++n) waiting.emplace_back(*this, of(second).lock());
  wait_for_places(16);
  run(held.unlock());
  for (auto& next : waiting) {
    until([&] { return next.succeeded(); });
    run(next.answer->value().unlock());
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_world, "a lost queue costs the order, and every waiter is served") {
  auto held = run(of(first).lock());
  auto one = waiter(second), two = waiter(third);
  SECTION("the list") { eye("DEL", "redisson_lock_queue:{f}"); }
  SECTION("the deadlines") { eye("DEL", "redisson_lock_timeout:{f}"); }
  SECTION("both") { eye("DEL", "redisson_lock_queue:{f}", "redisson_lock_timeout:{f}"); }
  SECTION("the lock itself") { eye("DEL", "f"); }
  SECTION("all") { eye("FLUSHALL"); }
  (void)code_of(held.unlock());
  until([&] { return one->succeeded() || two->succeeded(); });
  auto& next = one->succeeded() ? one : two;
  auto& last = one->succeeded() ? two : one;
  run(next->answer->value().unlock());
  until([&] { return last->succeeded(); });
  run(last->answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_world, "a place whose client is gone keeps nobody waiting") {
  auto held = run(of(first).lock());
  eye("RPUSH", "redisson_lock_queue:{f}", "57a9e700-0000-8000-8000-000000000000:1000000000");
  eye("ZADD", "redisson_lock_timeout:{f}", "9999999999999", "57a9e700-0000-8000-8000-000000000000:1000000000");
  started<lease> waiting(*this, of(second).lock());
  wait_for_places(2);
  run(held.unlock());
  until([&] { return waiting.succeeded(); }, 4s);
  run(waiting.answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_world, "a first in line that does not come loses its place to those behind it") {
  auto held = run(of(first).lock());
  // It listens, and never asks.
  const std::string paused = "57a9e700-0000-8000-8000-000000000000:1000000000";
  raw_client listener(server);
  listener.subscribe("redisson_lock__channel:{f}:" + paused);
  eye("RPUSH", "redisson_lock_queue:{f}", paused);
  eye("ZADD", "redisson_lock_timeout:{f}", "9999999999999", paused);
  started<lease> waiting(*this, of(first).lock());
  wait_for_places(2);
  run(held.unlock());
  until([&] { return waiting.succeeded(); }, 10s);
  CHECK(queue().empty());
  run(waiting.answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_world, "an owner that holds nests, also while others wait") {
  const owner me;
  auto held = run_as(me, of(first, me).lock());
  auto waiting = waiter(second);
  auto nested = run_as(me, of(first, me).lock());
  CHECK(run(of(first).hold_count(me)) >= 1);
  run(nested.unlock());
  CHECK(held.held());
  run(held.unlock());
  until([&] { return waiting->succeeded(); });
  run(waiting->answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_world, "try_lock stands in no queue, and overtakes nobody") {
  auto held = run(of(first).lock());
  CHECK_FALSE(run(of(second).try_lock()));
  CHECK(queue().empty());
  auto waiting = waiter(third);
  eye("DEL", "f");
  // The lock is free, and it is the turn of the one that waits.
  CHECK_FALSE(run(of(second).try_lock()));
  until([&] { return waiting->succeeded(); });
  (void)code_of(held.unlock());
  run(waiting->answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_world, "several locks as one take a fair mutex by itself, and any_of refuses it") {
  {
    const std::vector<mutex> both{of(first), first.mutex("plain")};
    auto leases = run(multi_lock(both).lock());
    CHECK(eye("EXISTS", "f", "plain") == 2);
    run(leases.unlock());
  }
  const std::vector<mutex> one{of(first)};
  CHECK(code_of_call([&] { any_of refused(one); }) == errc::invalid_config);
  check_nothing_is_left();
}
