// SPDX-License-Identifier: BSL-1.0
#include "base/timers.hpp"

#include <memory>
#include <string>

#include "support/catch.hpp"
#include "support/manual_clock.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using detail::timer;
using detail::timer_queue;

namespace {

constexpr auto start = detail::time_point{} + 1h;

}  // namespace

TEST_CASE("actions run when due, in order of their time and then of their coming") {
  timer_queue::place places[4];
  timer_queue queue;
  std::string ran;
  queue.add(places[0], start + 2s, [&] { ran += 'c'; });
  queue.add(places[1], start + 1s, [&] { ran += 'a'; });
  queue.add(places[2], start + 1s, [&] { ran += 'b'; });
  queue.add(places[3], start + 3s, [&] { ran += 'd'; });
  CHECK(queue.earliest() == start + 1s);
  queue.run_due(start);
  CHECK(ran.empty());
  queue.run_due(start + 2s);
  CHECK(ran == "abc");
  CHECK(queue.earliest() == start + 3s);
}

TEST_CASE("actions may add and remove actions") {
  timer_queue::place removed, places[3];
  timer_queue queue;
  std::string ran;
  queue.add(places[0], start, [&] {
    ran += 'a';
    queue.remove(removed);
    queue.add(places[1], start, [&] { ran += 'c'; });
    queue.add(places[2], start + 1s, [&] { ran += 'd'; });
  });
  queue.add(removed, start, [&] { ran += 'b'; });
  queue.run_due(start);
  CHECK(ran == "ac");
  CHECK(queue.earliest() == start + 1s);
}

TEST_CASE("a queue that ends drops its actions, which may own places of their own") {
  auto ended = std::make_unique<timer_queue>();
  const auto place = std::make_shared<timer_queue::place>();
  std::weak_ptr<timer_queue::place> owned;
  ended->add(*place, start, [] { FAIL("has ended"); });
  {
    const auto other = std::make_shared<timer_queue::place>();
    owned = other;
    ended->add(*other, start, [other] { FAIL("has ended"); });
  }
  ended.reset();
  CHECK_FALSE(place->due());
  CHECK(owned.expired());
}

TEST_CASE("a timer fires once, the last time it was set to") {
  test::manual_clock clock;
  test::manual_timers timers(clock);
  int fired = 0;
  timer t(timers);
  t.start(clock.now() + 10ms, [&] { ++fired; });
  const auto due = clock.now() + 20ms;
  t.start(due, [&] { fired += 10; });
  CHECK(t.due() == due);
  timers.advance(1s);
  CHECK(fired == 10);
  CHECK_FALSE(t.due());
  CHECK(timers.idle());
}

TEST_CASE("a timer that is stopped or destroyed does not fire") {
  test::manual_clock clock;
  test::manual_timers timers(clock);
  int fired = 0;
  {
    timer a(timers), b(timers);
    a.start(clock.now() + 10ms, [&] { ++fired; });
    b.start(clock.now() + 10ms, [&] { ++fired; });
    a.stop();
  }
  CHECK(timers.idle());
  timers.advance(1s);
  CHECK(fired == 0);
}

TEST_CASE("a timer may be started again or destroyed by its own action") {
  test::manual_clock clock;
  test::manual_timers timers(clock);
  auto t = std::make_unique<timer>(timers);
  int fired = 0;
  t->start(clock.now() + 10ms, [&] {
    ++fired;
    t->start(clock.now() + 10ms, [&] {
      ++fired;
      t.reset();
    });
  });
  timers.advance(1s);
  CHECK(fired == 2);
  CHECK(timers.idle());
}
