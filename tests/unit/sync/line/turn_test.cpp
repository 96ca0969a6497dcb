// SPDX-License-Identifier: BSL-1.0
#include "sync/line/turn.hpp"

#include "support/catch.hpp"

using holdfast::detail::time_point;
using holdfast::detail::turn;
using namespace std::chrono_literals;

namespace {

turn of_listeners() { return {time_point(), 0ns}; }

}  // namespace

TEST_CASE("a turn lasts until all have had the lock that waited as it began") {
  turn t = of_listeners();
  const time_point begin{1h};
  t.begin(begin, 2);
  CHECK(t.may_pass(begin + 3ms));
  t.passed();
  CHECK(t.may_pass(begin + 3ms));
  t.passed();
  CHECK_FALSE(t.may_pass(begin + 3ms));
  t.begin(begin + 5ms, 1);
  CHECK(t.may_pass(begin + 8ms));
}

TEST_CASE("a turn is not shorter than 2 ms and not longer than 20 ms") {
  turn t = of_listeners();
  const time_point begin{1h};
  t.begin(begin, 0);
  CHECK(t.may_pass(begin + 2ms - 1ns));
  CHECK_FALSE(t.may_pass(begin + 2ms));
  t.begin(begin, 1'000);
  CHECK(t.may_pass(begin + 20ms - 1ns));
  CHECK_FALSE(t.may_pass(begin + 20ms));
}

TEST_CASE("after a turn a client rests while others may have theirs") {
  turn t = of_listeners();
  const time_point now{1h};
  SECTION("twice the least each, where nothing is known of their pace") {
    t.release_ends(now, 3, turn::echo::none);
    CHECK(t.rests_until() == now + 2ms + 1'800us);
  }
  SECTION("no longer than the longest turn") {
    t.release_ends(now, 100'000, turn::echo::none);
    CHECK(t.rests_until() == now + 20ms);
  }
  SECTION("not for itself") {
    t.release_ends(now, 1, turn::echo::heard);
    CHECK(t.rests_until() == now);
  }
  SECTION("nor for its message, which it does not hear where it does not rest") {
    t.release_ends(now, 1, turn::echo::fades);
    CHECK(t.rests_until() == now);
    CHECK_FALSE(t.hear(now + 1ms));
  }
  SECTION("nor for its message, which it hears while it rests") {
    t.release_ends(now, 2, turn::echo::fades);
    CHECK(t.rests_until() == now + 2ms + 600us);
    CHECK(t.hear(now + 1ms));
  }
  SECTION("not where nobody has heard of the release") {
    t.release_ends(now, 0, turn::echo::heard);
    CHECK(t.rests_until() == now);
  }
}

TEST_CASE("each release of another client brings the own turn nearer") {
  turn t = of_listeners();
  const time_point now{1h};
  t.release_ends(now, 3, turn::echo::none);
  CHECK_FALSE(t.hear(now + 1ms));
  CHECK(t.rests_until() == now + 1ms + 2 * 2ms);
  CHECK_FALSE(t.hear(now + 3ms));
  CHECK(t.rests_until() == now + 3ms + 2 * 2ms);
  CHECK_FALSE(t.hear(now + 4ms));
  CHECK(t.rests_until() == now + 4ms + 500us);  // the moment for rivals
}

// ---- those who do not rest

namespace {

/// Has had a turn of 5 ms, and one other client that does not rest was found out after it.
struct beside_a_rival {
  beside_a_rival() {
    t.begin(now - 5ms, 0);
    t.release_ends(now, 1, turn::echo::none);
    t.hear(now + 2ms);
    t.found_busy(now + 3ms);
  }
  turn t = of_listeners();
  const time_point now{1h};
};

}  // namespace

TEST_CASE("now and then a client leaves the lock for a moment longer than the others need for a turn each") {
  turn t = of_listeners();
  const time_point now{1h};
  t.release_ends(now, 1, turn::echo::none);
  SECTION("for a half of their pace") {
    t.hear(now + 600us);
    CHECK(t.rests_until() == now + 600us + 300us);
  }
  SECTION("for 1 ms at most") {
    t.hear(now + 4ms);
    CHECK(t.rests_until() == now + 4ms + 1ms);
  }
  SECTION("not again before 250 ms are over") {
    t.hear(now + 1ms);
    t.release_ends(now + 3ms, 1, turn::echo::none);
    t.hear(now + 251ms - 1ns);
    CHECK(t.rests_until() == now + 251ms - 1ns);
    t.release_ends(now + 251ms, 1, turn::echo::none);
    t.hear(now + 252ms);
    CHECK(t.rests_until() == now + 252ms + 500us);
  }
}

TEST_CASE_METHOD(beside_a_rival, "beside clients that do not rest each other has as much time as the own turn took") {
  t.begin(now + 10ms, 0);
  t.release_ends(now + 14ms, 2, turn::echo::none);
  CHECK(t.rests_until() == now + 14ms + 2 * 4ms);
  t.hear(now + 15ms);
  t.hear(now + 16ms);
  CHECK(t.rests_until() == now + 14ms + 2 * 4ms);
}

TEST_CASE_METHOD(beside_a_rival, "a rest beside rivals ends 20 ms after the last release that was heard") {
  t.begin(now + 10ms, 0);
  t.release_ends(now + 30ms, 10, turn::echo::none);
  CHECK(t.rests_until() == now + 230ms);
  t.hear(now + 40ms);
  CHECK(t.rests_until() == now + 60ms);
  t.hear(now + 50ms);
  CHECK(t.rests_until() == now + 60ms);
}

TEST_CASE_METHOD(beside_a_rival, "the time that rivals are left has bounds") {
  SECTION("300 us each at least") {
    t.begin(now + 10ms, 0);
    t.release_ends(now + 10ms, 1, turn::echo::none);
    CHECK(t.rests_until() == now + 10ms + 300us);
  }
  SECTION("20 ms each at most") {
    t.release_ends(now + 1s, 2, turn::echo::none);
    CHECK(t.rests_until() == now + 1s + 40ms);
  }
  SECTION("200 ms in all at most") {
    t.release_ends(now + 1s, 1'000, turn::echo::none);
    CHECK(t.rests_until() == now + 1s + 200ms);
  }
  SECTION("none where nobody has heard of the release") {
    t.release_ends(now + 1s, 0, turn::echo::none);
    CHECK(t.rests_until() == now + 1s);
  }
}

TEST_CASE_METHOD(beside_a_rival, "rivals are looked for anew after a second") {
  t.begin(now + 1s, 0);
  t.release_ends(now + 1s + 3ms, 1, turn::echo::none);
  t.hear(now + 1s + 4ms);
  CHECK(t.rests_until() == now + 1s + 4ms + 500us);  // the moment for rivals
  SECTION("there are none any more") {
    t.begin(now + 1s + 5ms, 0);
    t.release_ends(now + 1s + 15ms, 1, turn::echo::none);
    t.hear(now + 1s + 16ms);
    CHECK(t.rests_until() == now + 1s + 16ms);
  }
  SECTION("there are: one has released in the moment that was left to it") {
    t.hear(now + 1s + 4ms + 100us);
    t.begin(now + 1s + 5ms, 0);
    t.release_ends(now + 1s + 15ms, 1, turn::echo::none);
    t.hear(now + 1s + 16ms);
    CHECK(t.rests_until() == now + 1s + 15ms + 10ms);
  }
}

TEST_CASE_METHOD(beside_a_rival, "beside rivals a client asks every 300 us, 200 times after each of its turns") {
  t.begin(now + 10ms, 0);
  SECTION("where others have heard of its release") {
    for (int turns = 0; turns < 2; ++turns) {
      t.release_ends(now + 14ms, 1, turn::echo::none);
      for (int asked = 0; asked < 200; ++asked) CHECK(t.found_busy(now + 20ms) == 300us);
      CHECK(t.found_busy(now + 20ms) == turn::duration::max());
    }
  }
  SECTION("not where nobody has") {
    t.release_ends(now + 14ms, 0, turn::echo::none);
    CHECK(t.found_busy(now + 20ms) == turn::duration::max());
  }
}

TEST_CASE("who asks much later than its rest ended has found no rival") {
  turn t = of_listeners();
  const time_point now{1h};
  t.release_ends(now, 1, turn::echo::none);
  t.hear(now + 600us);  // leaves a moment for rivals
  REQUIRE(t.rests_until() == now + 900us);
  const bool late = GENERATE(true, false);
  t.found_busy(now + 900us + 20ms - (late ? 0ns : 1ns));
  t.begin(now + 30ms, 0);
  t.release_ends(now + 40ms, 1, turn::echo::none);
  const auto by_the_pace = 2ms + 2 * 600us, by_the_own_turn = 10ms + 0us;
  CHECK(t.rests_until() == now + 40ms + (late ? by_the_pace : by_the_own_turn));
}

TEST_CASE("who finds a lock busy at another time has found no rival") {
  turn t = of_listeners();
  const time_point now{1h};
  t.release_ends(now, 1, turn::echo::none);
  t.found_busy(now + 1ms);
  t.begin(now + 2ms, 0);
  t.release_ends(now + 12ms, 1, turn::echo::none);
  t.hear(now + 13ms);
  CHECK(t.rests_until() == now + 13ms + 500us);
}

TEST_CASE("the pace of the others is that of the last two releases, within bounds") {
  turn t = of_listeners();
  const time_point now{1h};
  t.release_ends(now, 3, turn::echo::none);
  t.hear(now + 1us);
  CHECK(t.rests_until() == now + 1us + 2 * 600us);
  t.hear(now + 1s);
  CHECK(t.rests_until() == now + 1s + 10ms);
  t.hear(now + 2s);
  t.release_ends(now + 3s, 1, turn::echo::none);
  CHECK(t.rests_until() == now + 3s + 2ms + 2 * 5ms);
}

TEST_CASE("a client knows the message of its own release, whether it comes before or after the answer") {
  turn t = of_listeners();
  const time_point now{1h};
  t.release_begins(now);
  SECTION("before") {
    CHECK(t.hear(now));
    t.release_ends(now, 2, turn::echo::heard);
    CHECK_FALSE(t.hear(now + 1ms));
  }
  SECTION("after") {
    t.release_ends(now, 2, turn::echo::heard);
    CHECK(t.hear(now + 1ms));
    CHECK_FALSE(t.hear(now + 1ms));
  }
  SECTION("before, and another's as well") {
    CHECK(t.hear(now));
    CHECK_FALSE(t.hear(now));
  }
  SECTION("it is not waited for for ever") {
    t.release_ends(now, 2, turn::echo::heard);
    CHECK_FALSE(t.hear(now + 20ms));
  }
  SECTION("not where the client did not listen") {
    t.release_ends(now, 1, turn::echo::none);
    CHECK_FALSE(t.hear(now));
  }
  SECTION("of each release anew") {
    CHECK(t.hear(now));
    t.release_ends(now, 2, turn::echo::heard);
    t.release_begins(now + 1ms);
    t.release_ends(now + 1ms, 2, turn::echo::heard);
    CHECK(t.hear(now + 2ms));
    CHECK_FALSE(t.hear(now + 2ms));
  }
}

TEST_CASE("beside clients that look now and then the lock is left for as long as they wait between two looks") {
  const time_point now{1h};
  turn t(now, 20ms);
  const auto take_turn = [&t](time_point at, int passes) {
    t.begin(at, 0);
    for (int n = 0; n < passes; ++n) t.passed();
    t.release_ends(at, 0, turn::echo::none);
    return t.rests_until() - at;
  };
  CHECK(take_turn(now + 250ms - 1ns, 1) == 0ns);
  CHECK(take_turn(now + 250ms, 0) == 0ns);  // what was released after one hold was there for all
  CHECK(take_turn(now + 250ms, 1) == 20ms);
  SECTION("not again before 250 ms are over") {
    CHECK(take_turn(now + 500ms - 1ns, 1) == 0ns);
    CHECK(take_turn(now + 500ms, 1) == 20ms);
  }
  SECTION("after each turn with passes for a second, if somebody has it then") {
    t.found_busy(now + 270ms);
    CHECK(take_turn(now + 280ms, 1) == 20ms);
    CHECK(take_turn(now + 301ms, 0) == 0ns);
    CHECK(take_turn(now + 1s + 269ms, 1) == 20ms);
    CHECK(take_turn(now + 1s + 290ms, 1) == 0ns);
  }
  SECTION("who listens has its turn as ever") {
    t.begin(now + 600ms, 0);
    t.passed();
    t.release_ends(now + 600ms, 1, turn::echo::none);
    CHECK(t.rests_until() == now + 600ms + 2ms + 600us);
  }
}
