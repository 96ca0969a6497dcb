// SPDX-License-Identifier: BSL-1.0
#include "sync/line/handoff_window.hpp"

#include "support/catch.hpp"

using holdfast::detail::time_point;
using holdfast::detail::handoff_window;
using namespace std::chrono_literals;

namespace {

handoff_window of_listeners() { return {time_point(), 0ns}; }

}  // namespace

TEST_CASE("a turn lasts until all have had the lock that waited as it began") {
  handoff_window window = of_listeners();
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
  handoff_window window = of_listeners();
  const time_point begin{1h};
  window.begin(begin, 0);
  CHECK(window.may_pass(begin + 2ms - 1ns));
  CHECK_FALSE(window.may_pass(begin + 2ms));
  window.begin(begin, 1'000);
  CHECK(window.may_pass(begin + 20ms - 1ns));
  CHECK_FALSE(window.may_pass(begin + 20ms));
}

TEST_CASE("after a turn a client rests while others may have theirs") {
  handoff_window window = of_listeners();
  const time_point now{1h};
  SECTION("twice the least each, where nothing is known of their pace") {
    window.release_ends(now, 3, handoff_window::own_notification::none);
    CHECK(window.cool_down_until() == now + 2ms + 1'800us);
  }
  SECTION("no longer than the longest turn") {
    window.release_ends(now, 100'000, handoff_window::own_notification::none);
    CHECK(window.cool_down_until() == now + 20ms);
  }
  SECTION("not for itself") {
    window.release_ends(now, 1, handoff_window::own_notification::heard);
    CHECK(window.cool_down_until() == now);
  }
  SECTION("nor for its message, which it does not hear where it does not rest") {
    window.release_ends(now, 1, handoff_window::own_notification::fades);
    CHECK(window.cool_down_until() == now);
    CHECK_FALSE(window.hear(now + 1ms));
  }
  SECTION("nor for its message, which it hears while it rests") {
    window.release_ends(now, 2, handoff_window::own_notification::fades);
    CHECK(window.cool_down_until() == now + 2ms + 600us);
    CHECK(window.hear(now + 1ms));
  }
  SECTION("not where nobody has heard of the release") {
    window.release_ends(now, 0, handoff_window::own_notification::heard);
    CHECK(window.cool_down_until() == now);
  }
}

TEST_CASE("each release of another client brings the own turn nearer") {
  handoff_window window = of_listeners();
  const time_point now{1h};
  window.release_ends(now, 3, handoff_window::own_notification::none);
  CHECK_FALSE(window.hear(now + 1ms));
  CHECK(window.cool_down_until() == now + 1ms + 2 * 2ms);
  CHECK_FALSE(window.hear(now + 3ms));
  CHECK(window.cool_down_until() == now + 3ms + 2 * 2ms);
  CHECK_FALSE(window.hear(now + 4ms));
  CHECK(window.cool_down_until() == now + 4ms + 500us);  // the moment for rivals
}

// ---- those who do not rest

namespace {

/// Has had a turn of 5 ms, and one other client that does not rest was found out after it.
struct beside_a_rival {
  beside_a_rival() {
    window.begin(now - 5ms, 0);
    window.release_ends(now, 1, handoff_window::own_notification::none);
    window.hear(now + 2ms);
    window.found_busy(now + 3ms);
  }
  handoff_window window = of_listeners();
  const time_point now{1h};
};

}  // namespace

TEST_CASE("now and then a client leaves the lock for a moment longer than the others need for a turn each") {
  handoff_window window = of_listeners();
  const time_point now{1h};
  window.release_ends(now, 1, handoff_window::own_notification::none);
  SECTION("for a half of their pace") {
    window.hear(now + 600us);
    CHECK(window.cool_down_until() == now + 600us + 300us);
  }
  SECTION("for 1 ms at most") {
    window.hear(now + 4ms);
    CHECK(window.cool_down_until() == now + 4ms + 1ms);
  }
  SECTION("not again before 250 ms are over") {
    window.hear(now + 1ms);
    window.release_ends(now + 3ms, 1, handoff_window::own_notification::none);
    window.hear(now + 251ms - 1ns);
    CHECK(window.cool_down_until() == now + 251ms - 1ns);
    window.release_ends(now + 251ms, 1, handoff_window::own_notification::none);
    window.hear(now + 252ms);
    CHECK(window.cool_down_until() == now + 252ms + 500us);
  }
}

TEST_CASE_METHOD(beside_a_rival, "beside clients that do not rest each other has as much time as the own turn took") {
  window.begin(now + 10ms, 0);
  window.release_ends(now + 14ms, 2, handoff_window::own_notification::none);
  CHECK(window.cool_down_until() == now + 14ms + 2 * 4ms);
  window.hear(now + 15ms);
  window.hear(now + 16ms);
  CHECK(window.cool_down_until() == now + 14ms + 2 * 4ms);
}

TEST_CASE_METHOD(beside_a_rival, "a rest beside rivals ends 20 ms after the last release that was heard") {
  window.begin(now + 10ms, 0);
  window.release_ends(now + 30ms, 10, handoff_window::own_notification::none);
  CHECK(window.cool_down_until() == now + 230ms);
  window.hear(now + 40ms);
  CHECK(window.cool_down_until() == now + 60ms);
  window.hear(now + 50ms);
  CHECK(window.cool_down_until() == now + 60ms);
}

TEST_CASE_METHOD(beside_a_rival, "the time that rivals are left has bounds") {
  SECTION("300 us each at least") {
    window.begin(now + 10ms, 0);
    window.release_ends(now + 10ms, 1, handoff_window::own_notification::none);
    CHECK(window.cool_down_until() == now + 10ms + 300us);
  }
  SECTION("20 ms each at most") {
    window.release_ends(now + 1s, 2, handoff_window::own_notification::none);
    CHECK(window.cool_down_until() == now + 1s + 40ms);
  }
  SECTION("200 ms in all at most") {
    window.release_ends(now + 1s, 1'000, handoff_window::own_notification::none);
    CHECK(window.cool_down_until() == now + 1s + 200ms);
  }
  SECTION("none where nobody has heard of the release") {
    window.release_ends(now + 1s, 0, handoff_window::own_notification::none);
    CHECK(window.cool_down_until() == now + 1s);
  }
}

TEST_CASE_METHOD(beside_a_rival, "rivals are looked for anew after a second") {
  window.begin(now + 1s, 0);
  window.release_ends(now + 1s + 3ms, 1, handoff_window::own_notification::none);
  window.hear(now + 1s + 4ms);
  CHECK(window.cool_down_until() == now + 1s + 4ms + 500us);  // the moment for rivals
  SECTION("there are none any more") {
    window.begin(now + 1s + 5ms, 0);
    window.release_ends(now + 1s + 15ms, 1, handoff_window::own_notification::none);
    window.hear(now + 1s + 16ms);
    CHECK(window.cool_down_until() == now + 1s + 16ms);
  }
  SECTION("there are: one has released in the moment that was left to it") {
    window.hear(now + 1s + 4ms + 100us);
    window.begin(now + 1s + 5ms, 0);
    window.release_ends(now + 1s + 15ms, 1, handoff_window::own_notification::none);
    window.hear(now + 1s + 16ms);
    CHECK(window.cool_down_until() == now + 1s + 15ms + 10ms);
  }
}

TEST_CASE_METHOD(beside_a_rival, "beside rivals a client asks every 300 us, 200 times after each of its turns") {
  window.begin(now + 10ms, 0);
  SECTION("where others have heard of its release") {
    for (int turns = 0; turns < 2; ++turns) {
      window.release_ends(now + 14ms, 1, handoff_window::own_notification::none);
      for (int asked = 0; asked < 200; ++asked) CHECK(window.found_busy(now + 20ms) == 300us);
      CHECK(window.found_busy(now + 20ms) == handoff_window::duration::max());
    }
  }
  SECTION("not where nobody has") {
    window.release_ends(now + 14ms, 0, handoff_window::own_notification::none);
    CHECK(window.found_busy(now + 20ms) == handoff_window::duration::max());
  }
}

TEST_CASE("who asks much later than its rest ended has found no rival") {
  handoff_window window = of_listeners();
  const time_point now{1h};
  window.release_ends(now, 1, handoff_window::own_notification::none);
  window.hear(now + 600us);  // leaves a moment for rivals
  REQUIRE(window.cool_down_until() == now + 900us);
  const bool late = GENERATE(true, false);
  window.found_busy(now + 900us + 20ms - (late ? 0ns : 1ns));
  window.begin(now + 30ms, 0);
  window.release_ends(now + 40ms, 1, handoff_window::own_notification::none);
  const auto by_the_pace = 2ms + 2 * 600us, by_the_own_turn = 10ms + 0us;
  CHECK(window.cool_down_until() == now + 40ms + (late ? by_the_pace : by_the_own_turn));
}

TEST_CASE("who finds a lock busy at another time has found no rival") {
  handoff_window window = of_listeners();
  const time_point now{1h};
  window.release_ends(now, 1, handoff_window::own_notification::none);
  window.found_busy(now + 1ms);
  window.begin(now + 2ms, 0);
  window.release_ends(now + 12ms, 1, handoff_window::own_notification::none);
  window.hear(now + 13ms);
  CHECK(window.cool_down_until() == now + 13ms + 500us);
}

TEST_CASE("the pace of the others is that of the last two releases, within bounds") {
  handoff_window window = of_listeners();
  const time_point now{1h};
  window.release_ends(now, 3, handoff_window::own_notification::none);
  window.hear(now + 1us);
  CHECK(window.cool_down_until() == now + 1us + 2 * 600us);
  window.hear(now + 1s);
  CHECK(window.cool_down_until() == now + 1s + 10ms);
  window.hear(now + 2s);
  window.release_ends(now + 3s, 1, handoff_window::own_notification::none);
  CHECK(window.cool_down_until() == now + 3s + 2ms + 2 * 5ms);
}

TEST_CASE("a client knows the message of its own release, whether it comes before or after the answer") {
  handoff_window window = of_listeners();
  const time_point now{1h};
  window.release_begins(now);
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
    window.release_begins(now + 1ms);
    window.release_ends(now + 1ms, 2, handoff_window::own_notification::heard);
    CHECK(window.hear(now + 2ms));
    CHECK_FALSE(window.hear(now + 2ms));
  }
}

TEST_CASE("beside clients that look now and then the lock is left for as long as they wait between two looks") {
  const time_point now{1h};
  handoff_window window(now, 20ms);
  const auto take_turn = [&window](time_point at, int passes) {
    window.begin(at, 0);
    for (int n = 0; n < passes; ++n) window.passed();
    window.release_ends(at, 0, handoff_window::own_notification::none);
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
    window.found_busy(now + 270ms);
    CHECK(take_turn(now + 280ms, 1) == 20ms);
    CHECK(take_turn(now + 301ms, 0) == 0ns);
    CHECK(take_turn(now + 1s + 269ms, 1) == 20ms);
    CHECK(take_turn(now + 1s + 290ms, 1) == 0ns);
  }
  SECTION("who listens has its turn as ever") {
    window.begin(now + 600ms, 0);
    window.passed();
    window.release_ends(now + 600ms, 1, handoff_window::own_notification::none);
    CHECK(window.cool_down_until() == now + 600ms + 2ms + 600us);
  }
}
