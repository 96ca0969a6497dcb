// SPDX-License-Identifier: BSL-1.0
// A name and its waiters: the way to a grant, and the order of the line.
#include <time.h>

#include <boost/asio/error.hpp>

#include "support/seeded_random.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
namespace asio = boost::asio;

TEST_CASE_METHOD(engine_fixture, "a free lock is granted by one command and no subscription") {
  const auto a = lock("a");
  CHECK(a.waits());
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  grants();
  CHECK(a.granted());
  CHECK(server.subscribe_calls(channel("a")) == 0);
  CHECK(server.count() == 1);
  CHECK(heard() == "acquired");
}

TEST_CASE_METHOD(engine_fixture, "a busy lock is subscribed to and tried again after the acknowledgement") {
  const auto a = lock("a");
  busy(10s);
  CHECK(a.waits());
  CHECK(subscribers("a") == 1);
  CHECK(server.count() == 1);
  acknowledges("a");
  CHECK(server.count() == 2);
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  grants();
  CHECK(a.granted());
  CHECK(subscribers("a") == 0);
}

TEST_CASE_METHOD(engine_fixture, "a parked waiter tries again at a message") {
  const auto a = lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  CHECK(server.count() == 2);
  publishes("a");
  CHECK(server.count() == 3);
  grants();
  CHECK(a.granted());
}

TEST_CASE_METHOD(engine_fixture, "messages during a try ask for exactly one more try") {
  lock("a");
  busy(10s);
  acknowledges("a");
  for (int i = 0; i < 5; ++i) publishes("a");
  CHECK(server.count() == 2);
  busy(10s);
  CHECK(server.count() == 3);
  busy(10s);
  CHECK(server.count() == 3);
}

TEST_CASE_METHOD(engine_fixture,
                 "a new acknowledgement after an outage of the pub/sub connection asks for one more try") {
  lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  link_down();
  link_up();
  CHECK(server.count() == 2);
  acknowledges("a");
  CHECK(server.count() == 3);
}

TEST_CASE_METHOD(engine_fixture, "a waiter parks for the holder's TTL and at most 2 ms more") {
  random.number = 1'000'000;  // 1 ms in nanoseconds: the most
  lock("a");
  busy(700ms);
  CHECK(timers.next_due() == clock.now() + 702ms);
  random.number = 0;
  advance(702ms);
  CHECK(server.count() == 2);
  busy(0ms);
  CHECK(timers.next_due() ==
        clock.now() + 1ms);  // not at once: Redis keeps the key through the millisecond in which it ends
}

TEST_CASE_METHOD(
    engine_fixture,
    "a pause counts from the question: a process that was stopped meanwhile does not wait for all of it again") {
  lock("a");
  SECTION("what is left of it") {
    clock.skip(1s);
    busy(3s);
    CHECK(timers.next_due() == clock.now() + 2001ms);
  }
  SECTION("it is over") {
    clock.skip(50s);
    busy(7s);
    CHECK(timers.next_due() == clock.now() + 1ms);
  }
  SECTION("the poll cap neither") {
    clock.skip(1s);
    busy(25s);
    CHECK(timers.next_due() == clock.now() - 1s + config{}.poll_cap);
  }
}

TEST_CASE("a waiter parks no longer than the poll cap, less up to a tenth, whatever its own TTL is") {
  config c;
  c.poll_cap = 5s;
  engine_fixture f(c);
  f.lock("a");
  f.busy(20s);
  CHECK(f.timers.next_due() == f.clock.now() + 5s);
  f.lock("b", with({.ttl = 10ms}));
  f.busy(20s);
  CHECK(f.timers.next_due() == f.clock.now() + 5s);
  f.random.number = 500'000'000;  // 10 % of 5 s
  f.lock("c");
  f.busy(20s);
  f.advance(4500ms - 1ns);
  CHECK(f.in_flight() == 0);
  f.advance(1ns);
  CHECK(f.last_sent() == "acquire(c; 30000, #3)");
}

TEST_CASE_METHOD(engine_fixture, "a waiter is granted the lock without any message") {
  play();
  server.auto_acknowledge = false;
  node.hold("a", "other:1", clock.now() + 12s);
  const auto a = lock("a");
  advance(12s);
  CHECK(a.waits());
  advance(2ms);
  CHECK(a.granted());
  CHECK(sent("acquire") == 4);  // at once, after 5 s, 10 s and 12 s
}

TEST_CASE_METHOD(engine_fixture,
                 "a thousand waiters are served in order with one subscription and one attempt in flight") {
  play();
  node.hold("a", "other:1", clock.now() + 1min);
  std::vector<lock_call> calls;
  for (int i = 0; i < 1000; ++i) calls.push_back(lock("a"));
  run();
  CHECK(server.subscribe_calls(channel("a")) == 1);
  CHECK(sent("acquire") == 2);
  node.clear();
  publishes("a");
  for (auto& c : calls) {
    REQUIRE(c.granted());
    const auto waiting = std::count_if(calls.begin(), calls.end(), [](const auto& other) { return other.waits(); });
    REQUIRE(waiting == &calls.back() - &c);
    CHECK(in_flight() <= 1);
    unlock(c);
    run();
  }
  CHECK(server.subscribe_calls(channel("a")) == 1);
  CHECK(sent("acquire") <= 2 + 2 * 1000);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a deadline while a hold of this client is being released is contention") {
  const auto a = hold("a");
  const auto b = try_lock_for("a", 100ms);
  advance(99ms);
  unlock(a);
  SECTION("not answered yet") { CHECK(last_sent().starts_with("release")); }
  SECTION("answered, and the first try is under way") {
    frees();
    CHECK(last_sent().starts_with("acquire"));
  }
  advance(1ms);
  CHECK(b.refused());
}

TEST_CASE_METHOD(engine_fixture, "a deadline of who became first of a parked line is contention") {
  const auto a = try_lock_for("a", 50ms);
  busy(10s);
  acknowledges("a");
  busy(10s);
  advance(1ms);
  const auto b = try_lock_for("a", 60ms);
  advance(50ms);
  CHECK(a.refused());
  advance(10ms);
  CHECK(b.refused());
}

TEST_CASE_METHOD(engine_fixture, "a deadline in a pause after a failure is that failure, also for who came in it") {
  link_down();
  const auto a = try_lock_for("a", 15ms);
  fails(errc::unreachable);
  advance(1ms);
  const auto b = try_lock_for("a", 15ms);
  advance(14ms);
  CHECK(a.failed_with(errc::unreachable));
  advance(1ms);
  CHECK(b.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(engine_fixture, "the next waiter parks while the lock is held here and tries when the hold ends") {
  const auto first = lock("a");
  const auto second = lock("a");
  CHECK(server.count() == 1);
  grants();
  CHECK(first.granted());
  CHECK(server.count() == 1);
  CHECK(subscribers("a") == 1);
  advance(100ms);
  CHECK(server.count() == 1);
  unlock(first);
  run();
  CHECK(last_sent().starts_with("release"));
  frees();
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(second.granted());
}

TEST_CASE_METHOD(engine_fixture, "a waiter behind a hold of this client does not ask Redis at the poll cap") {
  const auto held = hold("a");
  const auto second = lock("a");
  acknowledges("a");
  CHECK(sent("acquire") == 1);
  advance(5s);
  CHECK(sent("acquire") == 1);  // held here: nothing to ask
  CHECK(timers.next_due() <= clock.now() + 5s);
}

TEST_CASE_METHOD(engine_fixture, "a waiter tries as soon as the hold here is lost") {
  const auto held = hold("a", with({.ttl = 1s}));
  const auto second = lock("a");
  advance(988ms);
  CHECK(held.value()->of->ended());
  CHECK(last_sent() == "acquire(a; 30000, #2)");
}

TEST_CASE_METHOD(engine_fixture, "a waiter that leaves from the middle is passed over") {
  const auto held = hold("a");
  const auto second = lock("a");
  const auto third = lock("a");
  second.cancel();
  CHECK(second.failed_with(asio::error::operation_aborted));
  unlock(held);
  frees();
  grants();
  CHECK(third.granted());
}

namespace {

std::chrono::nanoseconds processor_time() {
  timespec t{};
  REQUIRE(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

/// Of one hand-over in a line of so many waiters, each with an owner of its own.
std::chrono::nanoseconds cost_of_hand_over(int waiters) {
  engine_fixture f;
  f.play();
  std::vector<lock_call> calls;
  for (int i = 0; i < waiters; ++i) calls.push_back(f.lock("a", by(owner())));
  f.run();
  constexpr int hand_overs = 40;
  const auto begin = processor_time();
  for (std::size_t i = 0; i < hand_overs; ++i) {
    f.unlock(calls.at(i));
    f.run();
  }
  const auto end = processor_time();
  REQUIRE(calls.at(hand_overs).granted());
  return (end - begin) / hand_overs;
}

}  // namespace

TEST_CASE("a hand-over costs the same however many wait with an owner of their own") {
  CHECK(cost_of_hand_over(50'000) < 20 * cost_of_hand_over(50));
}

TEST_CASE("at its grant an owner takes all its waiters out of the line in their order, and nobody else's") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    seeded_random draw(seed);
    engine_fixture f;
    const std::vector<owner> owners(3);
    struct caller {
      lock_call call;
      std::optional<owner> who;
    };
    std::vector<caller> line;
    for (int i = 0; i < 12; ++i) {
      const auto n = draw.next() % 4;
      const auto who = n < owners.size() ? std::optional(owners[n]) : std::nullopt;
      line.push_back({f.lock("a", {.who = who}), who});
    }
    for (auto each = line.begin() + 1; each != line.end();) {
      if (draw.next() % 4 == 0) {
        each->call.cancel();
        each = line.erase(each);
      } else {
        ++each;
      }
    }
    f.grants();
    REQUIRE(line.front().call.granted());
    const auto who = line.front().who;
    const auto is_mine = [&](const caller& c) { return who && c.who == who; };
    const auto mine = std::count_if(line.begin(), line.end(), is_mine);
    for (const auto& each : line) {
      if (!is_mine(each)) continue;
      if (each.call.waits()) f.reenters();  // the next in order
      CHECK(each.call.granted());
    }
    CHECK(f.sent("set_hold_count") == static_cast<std::size_t>(std::max<std::ptrdiff_t>(mine - 1, 0)));
    for (const auto& each : line) CHECK(each.call.waits() == (!is_mine(each) && &each != &line.front()));
  }
}

TEST_CASE_METHOD(engine_fixture, "an event says how many stood before and how long it took") {
  const auto first = lock("a");
  const auto second = lock("a");
  advance(100ms);
  grants();
  CHECK(last_event().waiters == 0);
  CHECK(last_event().waited == 100ms);
  unlock(first);
  frees();
  advance(100ms);
  grants();
  CHECK(second.granted());
  CHECK(last_event().what == kind::acquired);
  CHECK(last_event().waiters == 1);
  CHECK(last_event().waited == 200ms);
}

TEST_CASE_METHOD(engine_fixture, "two names do not wait for each other") {
  const auto a = lock("a");
  const auto b = lock("b");
  CHECK(in_flight() == 2);
  busy(10s);
  grants();
  CHECK(a.waits());
  CHECK(b.granted());
}

TEST_CASE_METHOD(engine_fixture, "a waiter tries at once when the hold before it turns out to be gone at its unlock") {
  const auto first = hold("a");
  const auto second = lock("a");
  CHECK(in_flight() == 0);
  const auto u = unlock(first);
  not_yours();
  CHECK(u.failed_with(errc::lost));
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(second.granted());
}
