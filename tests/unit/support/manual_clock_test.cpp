// SPDX-License-Identifier: BSL-1.0
#include "support/manual_clock.hpp"
#include "support/run_at.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

using holdfast::test::manual_clock;
using holdfast::test::manual_timers;
using holdfast::test::run_at;
using namespace std::chrono_literals;

TEST_CASE("manual timers run in order and each at its own instant") {
  manual_clock clock;
  manual_timers timers(clock);
  const auto start = clock.now();
  std::vector<std::pair<int, std::chrono::nanoseconds>> ran;
  const auto note = [&](int which) { ran.emplace_back(which, clock.now() - start); };
  run_at(timers, start + 20ms, [&] { note(2); });
  run_at(timers, start + 10ms, [&] {
    note(1);
    run_at(timers, start + 15ms, [&] { note(3); });
  });
  run_at(timers, start + 31ms, [&] { note(4); });
  timers.advance(30ms);
  CHECK(ran == std::vector<std::pair<int, std::chrono::nanoseconds>>{{1, 10ms}, {3, 15ms}, {2, 20ms}});
  CHECK(clock.now() - start == 30ms);
  CHECK(timers.next_due() == start + 31ms);
  CHECK(timers.advance_to_next());
  CHECK(clock.now() - start == 31ms);
  CHECK_FALSE(timers.advance_to_next());
  CHECK(timers.idle());
}

TEST_CASE("a cancelled timer does not run") {
  manual_clock clock;
  manual_timers timers(clock);
  bool ran = false;
  holdfast::detail::timer cancelled(timers);
  cancelled.start(clock.now() + 10ms, [&] { ran = true; });
  run_at(timers, clock.now() + 5ms, [&] { cancelled.stop(); });
  timers.advance(1s);
  CHECK_FALSE(ran);
}

TEST_CASE("a clock that skipped time runs its timers late") {
  manual_clock clock;
  manual_timers timers(clock);
  const auto start = clock.now();
  holdfast::detail::time_point ran{};
  run_at(timers, start + 10ms, [&] { ran = clock.now(); });
  clock.skip(1h);
  CHECK(ran == holdfast::detail::time_point{});
  timers.run_due();
  CHECK(ran == start + 1h);
}
