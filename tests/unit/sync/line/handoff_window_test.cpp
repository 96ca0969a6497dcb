// SPDX-License-Identifier: BSL-1.0
#include "sync/line/handoff_window.hpp"

#include "support/catch.hpp"

using holdfast::detail::handoff_window;
using holdfast::detail::stint;
using holdfast::detail::time_point;
using namespace std::chrono_literals;

namespace {

/// The window of a lock that one claim at a time holds, and the turn of that claim.
struct lock_window : handoff_window {
  using handoff_window::handoff_window;

  void begin(time_point now, std::uint32_t waiting) {
    handoff_window::begin(now);
    turn = {now, waiting};
  }
  bool may_pass(time_point now) const { return handoff_window::may_pass(turn, now); }
  void passed() { ++turn.passed; }
  void release(time_point now, std::uint64_t subscribers, own_notification own) {
    release_begins(now, turn);
    release_ends(now, subscribers, own);
  }

  stint turn{};
};

lock_window of_listeners() { return {time_point(), 0ns}; }

}  // namespace

TEST_CASE("a turn lasts until all have had the lock that waited as it began") {
  lock_window window = of_listeners();
  const time_point begin{1h};
  window.begin(begin, 2);
  CHECK(window.may_pass(begin + 3ms));
  window.passed();
  CHECK(window.may_pass(begin + 3ms));
  window.passed();
  CHECK_FALSE(window.may_pass(begin + 3ms));
  window.begin(begin + 5ms, 1);
  CHECK(window.may_pass(begin + 8ms));
}

TEST_CASE("a turn is not shorter than 2 ms and not longer than 20 ms") {
  lock_window window = of_listeners();
  const time_point begin{1h};
  window.begin(begin, 0);
  CHECK(window.may_pass(begin + 2ms - 1ns));
  CHECK_FALSE(window.may_pass(begin + 2ms));
  window.begin(begin, 1'000);
  CHECK(window.may_pass(begin + 20ms - 1ns));
  CHECK_FALSE(window.may_pass(begin + 20ms));
}

TEST_CASE("after a turn a client rests while others may have theirs") {
  lock_window window = of_listeners();
  const time_point now{1h};
  SECTION("twice the least each, where nothing is known of their pace") {
    window.release(now, 3, handoff_window::own_notification::none);
    CHECK(window.cool_down_until() == now + 2ms + 1'800us);
  }
  SECTION("no longer than the longest turn") {
    window.release(now, 100'000, handoff_window::own_notification::none);
    CHECK(window.cool_down_until() == now + 20ms);
  }
  SECTION("not for itself") {
    window.release(now, 1, handoff_window::own_notification::heard);
    CHECK(window.cool_down_until() == now);
  }
  SECTION("nor for its message, which it does not hear where it does not rest") {
    window.release(now, 1, handoff_window::own_notification::fades);
    CHECK(window.cool_down_until() == now);
    CHECK_FALSE(window.hear(now + 1ms));
  }
  SECTION("nor for its message, which it hears while it rests") {
    window.release(now, 2, handoff_window::own_notification::fades);
    CHECK(window.cool_down_until() == now + 2ms + 600us);
    CHECK(window.hear(now + 1ms));
  }
  SECTION("not where nobody has heard of the release") {
    window.release(now, 0, handoff_window::own_notification::heard);
    CHECK(window.cool_down_until() == now);
  }
}

TEST_CASE("each release of another client brings the own turn nearer") {
  lock_window window = of_listeners();
  const time_point now{1h};
  window.release(now, 3, handoff_window::own_notification::none);
  CHECK_FALSE(window.hear(now + 1ms));
  CHECK(window.cool_down_until() == now + 1ms + 2 * 2ms);
  CHECK_FALSE(window.hear(now + 3ms));
  CHECK(window.cool_down_until() == now + 3ms + 2 * 2ms);
  CHECK_FALSE(window.hear(now + 4ms));
  CHECK(window.cool_down_until() == now + 4ms);
}

// ---- clients that do not take turns

namespace {

/// A client that has found the lock held by a client that takes no turns. It has heard a release every 10 ms since.
struct beside_barging {
  beside_barging() {
    window.found_busy(now - 50ms, true);
    take_turn(now - 31ms, 1, 0);
    window.hear(now - 20ms);
    window.hear(now - 10ms);
    window.hear(now);
  }
  /// With holds of 1 ms each. Its release is heard by these others.
  void take_turn(time_point begin, int holds, std::uint64_t others) {
    window.begin(begin, 7);
    for (int n = 1; n < holds; ++n) window.passed();
    window.release(begin + holds * 1ms, others, handoff_window::own_notification::none);
  }
  handoff_window::duration cool_down(time_point from) const { return window.cool_down_until() - from; }

  lock_window window = of_listeners();
  const time_point now{1h};
};

}  // namespace

TEST_CASE_METHOD(beside_barging,
                 "beside clients that take no turns each other client gets as much time as the own turn took") {
  take_turn(now, 4, 1);
  CHECK(cool_down(now + 4ms) == 4ms);
  take_turn(now + 20ms, 4, 3);
  CHECK(cool_down(now + 24ms) == 12ms);
  take_turn(now + 50ms, 4, 0);
  CHECK(cool_down(now + 54ms) == 0ms);
}

TEST_CASE_METHOD(beside_barging, "each release pays for one hold of the own length") {
  take_turn(now, 4, 1);
  window.hear(now + 4ms + 1'500us);
  CHECK(cool_down(now + 4ms + 1'500us) == 3ms);
  window.hear(now + 4ms + 1'600us);
  CHECK(cool_down(now + 4ms + 1'600us) == 2ms);
  SECTION("one that comes after two such holds pays for its time") {
    window.hear(now + 4ms + 3'600us);
    CHECK(cool_down(now + 4ms + 3'600us) == 0ms);
  }
  SECTION("the cool-down ends when as many were heard as the own turn had") {
    window.hear(now + 6ms);
    CHECK(cool_down(now + 6ms) == 1ms);
    window.hear(now + 6ms + 100us);
    CHECK(cool_down(now + 6ms + 100us) == 0ms);
  }
}

TEST_CASE_METHOD(beside_barging, "a silence of twice the usual interval ends the cool-down with a question") {
  window.hear(now + 3ms);
  window.hear(now + 6ms);
  take_turn(now + 6ms, 7, 7);  // 49 ms for the others
  const auto end = now + 13ms;
  CHECK(cool_down(end) == 6ms);
  SECTION("it goes on if the lock is held") {
    CHECK(window.found_busy(end + 6ms, true) == 43ms);
    CHECK(cool_down(end) == 49ms);
    window.found_busy(end + 49ms, false);
    CHECK(cool_down(end) == 49ms);
  }
  SECTION("for a second, until the next question") {
    take_turn(now + 1h, 7, 700);
    CHECK(window.found_busy(now + 1h + 10ms, false) == 1s);
  }
  SECTION("the longer of the last two intervals counts") {
    window.hear(end + 4ms);
    CHECK(cool_down(end + 4ms) == 8ms);
    window.hear(end + 5ms);
    CHECK(cool_down(end + 5ms) == 8ms);
    window.hear(end + 6ms);
    CHECK(cool_down(end + 6ms) == 2ms);  // the shortest
  }
  SECTION("20 ms at most") {
    window.hear(end + 15ms);
    CHECK(cool_down(end + 15ms) == 20ms);
  }
}

TEST_CASE_METHOD(beside_barging, "the time that others get has a bound") {
  window.begin(now, 0);
  window.release(now + 1h, 100'000, handoff_window::own_notification::none);
  const auto released = now + 1h;
  CHECK(window.found_busy(released + 1min - 1ns, true) == 1ns);
  CHECK(cool_down(released) == 1min);
}

TEST_CASE_METHOD(beside_barging, "after the cool-down a client asks again and again when the hold is nearly over") {
  const auto end = now + 10ms;
  CHECK(window.found_busy(now + 2ms, true) == 7'500us);
  for (int n = 0; n < 12; ++n) CHECK(window.found_busy(end - 500us, true) == 100us);
  CHECK(window.found_busy(end - 500us, true) == handoff_window::duration::max());
  SECTION("twelve times for each release") {
    window.hear(end);
    for (int n = 0; n < 12; ++n) CHECK(window.found_busy(end + 9'500us, true) == 100us);
    CHECK(window.found_busy(end + 9'500us, true) == handoff_window::duration::max());
  }
  SECTION("by the shorter one of the last two intervals") {
    window.hear(end + 20ms);
    CHECK(window.found_busy(end + 20ms, true) == 9'500us);
    window.hear(end + 25ms);
    CHECK(window.found_busy(end + 25ms, true) == 4'500us);
    window.hear(end + 45ms);
    CHECK(window.found_busy(end + 45ms, true) == 4'500us);
  }
}

TEST_CASE_METHOD(
    beside_barging,
    "a release after the cool-down is followed by a question, and by another when the next hold is nearly over") {
  window.hear(now + 10ms);
  CHECK(cool_down(now + 10ms) == 0ms);
  CHECK(window.found_busy(now + 10ms, true) == 9'500us);
}

TEST_CASE_METHOD(beside_barging, "each holder that takes turns makes clients that take none less likely") {
  const bool enough = GENERATE(false, true);
  for (int n = 0; n < (enough ? 15 : 13); ++n) window.found_busy(now + 10ms, false);
  window.begin(now + 50ms, 7);
  CHECK(window.may_pass(now + 75ms) == !enough);  // a turn of a few long holds
}

TEST_CASE_METHOD(beside_barging, "a question in a cool-down is repeated when the holder's TTL ends") {
  take_turn(now, 4, 1);
  CHECK(window.found_busy(now + 4ms, true, 1ms) == 1ms);
  CHECK(cool_down(now + 4ms) == 1ms);
  CHECK(window.found_busy(now + 5ms, true) == 3ms);
}

TEST_CASE("a client that has heard of no release waits for the first one, whoever holds") {
  lock_window window = of_listeners();
  const time_point now{1h};
  CHECK(window.found_busy(now, true) == handoff_window::duration::max());
  window.hear(now + 1ms);
  CHECK(window.found_busy(now + 1ms, true) == 100us);
}

TEST_CASE_METHOD(beside_barging, "a holder that takes turns is not asked for its end") {
  CHECK(window.found_busy(now + 10ms, false) == handoff_window::duration::max());
  CHECK(window.found_busy(now + 10ms, true) == 100us);
}

TEST_CASE_METHOD(beside_barging, "a grant that comes late shortens the next cool-down") {
  take_turn(now, 7, 1);
  window.found_busy(now + 14ms, true);
  window.found_busy(now + 16ms, false);
  SECTION("by the time since the first question after the last one") {
    take_turn(now + 18ms, 7, 1);
    CHECK(cool_down(now + 25ms) == 3ms);
  }
  SECTION("to nothing at most") {
    take_turn(now + 30ms, 7, 1);
    CHECK(cool_down(now + 37ms) == 0ms);
  }
  SECTION("once") {
    take_turn(now + 18ms, 7, 1);
    take_turn(now + 30ms, 7, 1);
    CHECK(cool_down(now + 37ms) == 7ms);
  }
  SECTION("not for a question in the cool-down") {
    take_turn(now + 18ms, 7, 1);
    window.found_busy(now + 26ms, true);
    take_turn(now + 30ms, 7, 1);
    CHECK(cool_down(now + 37ms) == 7ms);
  }
}

TEST_CASE_METHOD(beside_barging, "beside clients that take no turns a turn of long holds has up to eight of them") {
  window.begin(now, 100);
  for (int n = 0; n < 7; ++n) {
    CHECK(window.may_pass(now + n * 1s));
    window.passed();
  }
  CHECK_FALSE(window.may_pass(now + 7s));
  CHECK(window.may_pass(now + 20ms - 1ns));
  SECTION("and no more than waited at its beginning") {
    window.begin(now, 4);
    for (int n = 0; n < 4; ++n) {
      CHECK(window.may_pass(now + 1s));
      window.passed();
    }
    CHECK_FALSE(window.may_pass(now + 1s));
  }
  SECTION("and three at least") {
    window.begin(now, 0);
    for (int n = 0; n < 2; ++n) {
      CHECK(window.may_pass(now + 1s));
      window.passed();
    }
    CHECK_FALSE(window.may_pass(now + 1s));
  }
}

TEST_CASE_METHOD(beside_barging, "sixteen turns without a sign of clients that take no turns end the rules for them") {
  window.found_busy(now, true);
  for (int n = 1; n < 16; ++n) {
    window.begin(now + n * 10ms, 100);
    window.release(now + n * 10ms, 0, handoff_window::own_notification::none);
  }
  window.begin(now + 1s, 100);
  const bool again = GENERATE(true, false);
  if (again) window.found_busy(now + 1s, true);
  CHECK(window.may_pass(now + 2s) == again);
}

TEST_CASE("two clients that take turns never take each other for one that does not") {
  lock_window window = of_listeners();
  const time_point now{1h};
  for (int n = 0; n < 100; ++n) {
    const auto at = now + n * 10ms;
    window.begin(at, 100);
    CHECK_FALSE(window.may_pass(at + 1s));
    window.release(at + 1ms, 1, handoff_window::own_notification::none);
    CHECK(window.found_busy(at + 2ms, false) == handoff_window::duration::max());
    window.hear(at + 3ms);
    CHECK(window.cool_down_until() == at + 3ms);
    CHECK(window.found_busy(at + 3ms, false) == handoff_window::duration::max());
  }
}

TEST_CASE("the pace of the others is that of the last two releases, within bounds") {
  lock_window window = of_listeners();
  const time_point now{1h};
  window.release(now, 3, handoff_window::own_notification::none);
  window.hear(now + 1us);
  CHECK(window.cool_down_until() == now + 1us + 2 * 600us);
  window.hear(now + 1s);
  CHECK(window.cool_down_until() == now + 1s + 10ms);
  window.hear(now + 2s);
  window.release(now + 3s, 1, handoff_window::own_notification::none);
  CHECK(window.cool_down_until() == now + 3s + 2ms + 2 * 5ms);
}

TEST_CASE("a client knows the message of its own release, whether it comes before or after the answer") {
  handoff_window window = of_listeners();
  const time_point now{1h};
  window.release_begins(now, {});
  SECTION("before") {
    CHECK(window.hear(now));
    window.release_ends(now, 2, handoff_window::own_notification::heard);
    CHECK_FALSE(window.hear(now + 1ms));
  }
  SECTION("after") {
    window.release_ends(now, 2, handoff_window::own_notification::heard);
    CHECK(window.hear(now + 1ms));
    CHECK_FALSE(window.hear(now + 1ms));
  }
  SECTION("before, and another's as well") {
    CHECK(window.hear(now));
    CHECK_FALSE(window.hear(now));
  }
  SECTION("it is not waited for for ever") {
    window.release_ends(now, 2, handoff_window::own_notification::heard);
    CHECK_FALSE(window.hear(now + 20ms));
  }
  SECTION("not where the client did not listen") {
    window.release_ends(now, 1, handoff_window::own_notification::none);
    CHECK_FALSE(window.hear(now));
  }
  SECTION("of each release anew") {
    CHECK(window.hear(now));
    window.release_ends(now, 2, handoff_window::own_notification::heard);
    window.release_begins(now + 1ms, {});
    window.release_ends(now + 1ms, 2, handoff_window::own_notification::heard);
    CHECK(window.hear(now + 2ms));
    CHECK_FALSE(window.hear(now + 2ms));
  }
}

TEST_CASE("a client knows the messages of several releases that are under way together") {
  handoff_window window = of_listeners();
  const time_point now{1h};
  window.release_begins(now, {});
  window.release_begins(now, {});
  const int early = GENERATE(0, 1, 2);
  for (int n = 0; n < early; ++n) CHECK(window.hear(now));
  for (int n = 0; n < 2; ++n) window.release_ends(now, 2, handoff_window::own_notification::heard);
  for (int n = early; n < 2; ++n) CHECK(window.hear(now + 1ms));
  CHECK_FALSE(window.hear(now + 1ms));
}

TEST_CASE("a release that found no memory is waited for until no other is under way") {
  handoff_window window = of_listeners();
  const time_point now{1h};
  window.release_begins(now, {});
  window.all_released();
  CHECK_FALSE(window.hear(now));
}

TEST_CASE("each claim has a turn of its own") {
  handoff_window window = of_listeners();
  const time_point now{1h};
  const stint older{now - 15ms, 2, 1}, newer{now, 2, 0};
  CHECK(window.may_pass(older, now + 3ms));
  CHECK_FALSE(window.may_pass(older, now + 5ms));
  CHECK(window.may_pass(newer, now + 5ms));
  CHECK_FALSE(window.may_pass({now - 3ms, 2, 2}, now));
}

TEST_CASE("beside clients that look now and then the lock is left for as long as they wait between two looks") {
  const time_point now{1h};
  lock_window window(now, 20ms);
  const auto take_turn = [&window](time_point at, int passes) {
    window.begin(at, 0);
    for (int n = 0; n < passes; ++n) window.passed();
    window.release(at, 0, handoff_window::own_notification::none);
    return window.cool_down_until() - at;
  };
  CHECK(take_turn(now + 250ms - 1ns, 1) == 0ns);
  CHECK(take_turn(now + 250ms, 0) == 0ns);  // what was released after one hold was there for all
  CHECK(take_turn(now + 250ms, 1) == 20ms);
  SECTION("not again before 250 ms are over") {
    CHECK(take_turn(now + 500ms - 1ns, 1) == 0ns);
    CHECK(take_turn(now + 500ms, 1) == 20ms);
  }
  SECTION("after each turn with passes for a second, if somebody has it then") {
    window.found_busy(now + 270ms, false);
    CHECK(take_turn(now + 280ms, 1) == 20ms);
    CHECK(take_turn(now + 301ms, 0) == 0ns);
    CHECK(take_turn(now + 1s + 269ms, 1) == 20ms);
    CHECK(take_turn(now + 1s + 290ms, 1) == 0ns);
  }
  SECTION("but not if it was asked for much later") {
    const bool late = GENERATE(true, false);
    window.found_busy(now + 290ms - (late ? 0ns : 1ns), false);
    CHECK(take_turn(now + 300ms, 1) == (late ? 0ms : 20ms));
  }
  SECTION("who listens has its turn as ever") {
    window.begin(now + 600ms, 0);
    window.passed();
    window.release(now + 600ms, 1, handoff_window::own_notification::none);
    CHECK(window.cool_down_until() == now + 600ms + 2ms + 600us);
  }
}

TEST_CASE("a cool-down is not prolonged by the next release of a client that has several claims") {
  using own = handoff_window::own_notification;
  handoff_window window(time_point(), 0ns, true);
  const time_point begin{1h};
  const stint turn{begin, 0};
  window.begin(begin);
  window.release_begins(begin + 30ms, turn);
  window.release_ends(begin + 31ms, 2, own::heard);
  const auto end = window.cool_down_until();
  CHECK(end > begin + 33ms);
  window.release_begins(begin + 32ms, turn);
  CHECK(window.cool_down_until() == end);
  window.release_ends(begin + 33ms, 2, own::heard);
  CHECK(window.cool_down_until() == end);
  window.release_begins(end, turn);
  CHECK(window.cool_down_until() > end);
}
