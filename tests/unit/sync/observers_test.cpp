// SPDX-License-Identifier: BSL-1.0
// Events of holds and waits, and the words that say why.
#include <map>

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("each acquisition ends in exactly one event, whatever ends it") {
  struct way {
    const char* name;
    void (*end)(engine_fixture&, const lock_call&);
    kind event;
  };
  const way ways[] = {
      {"unlocked",
       [](engine_fixture& fixture, const lock_call& a) {
         fixture.unlock(a);
         fixture.frees();
       },
       kind::released},
      {"dropped",
       [](engine_fixture& fixture, const lock_call& a) {
         fixture.drop(a);
         fixture.frees();
       },
       kind::released},
      {"its release is answered late",
       [](engine_fixture& fixture, const lock_call& a) {
         fixture.unlock(a);
         fixture.advance(1s);
         fixture.frees();
       },
       kind::release_failed},
      {"its release is never answered",
       [](engine_fixture& fixture, const lock_call& a) {
         fixture.unlock(a);
         fixture.link_down();
       },
       kind::release_failed},
      {"its release is refused",
       [](engine_fixture& fixture, const lock_call& a) {
         fixture.unlock(a);
         fixture.errs("NOPERM this user has no permissions");
       },
       kind::release_failed},
      {"its release finds it gone",
       [](engine_fixture& fixture, const lock_call& a) {
         fixture.unlock(a);
         fixture.not_yours();
       },
       kind::lost},
      {"its renewal finds it gone, and then it is unlocked",
       [](engine_fixture& fixture, const lock_call& a) {
         fixture.advance(10s);
         fixture.confirms_nothing();
         fixture.unlock(a);
       },
       kind::lost},
      {"its validity ends, and then it is dropped",
       [](engine_fixture& fixture, const lock_call& a) {
         fixture.link_down();
         fixture.advance(1min);
         fixture.drop(a);
       },
       kind::lost},
      {"its client is closed",
       [](engine_fixture& fixture, const lock_call& a) {
         fixture.close();
         fixture.frees();
         fixture.unlock(a);
       },
       kind::closed},
      {"its client is closed, and Redis is away",
       [](engine_fixture& fixture, const lock_call&) {
         fixture.link_down();
         fixture.close(100ms);
       },
       kind::closed},
      {"its client is abandoned", [](engine_fixture& fixture, const lock_call&) { fixture.locks->abandon(); },
       kind::closed},
  };
  for (const auto& way : ways) {
    CAPTURE(way.name);
    engine_fixture fixture;
    const auto a = fixture.hold("a");
    way.end(fixture, a);
    fixture.advance(2min);
    std::vector<kind> ends;
    for (const auto& event : fixture.events->all)
      if (ends_hold(event.what)) ends.push_back(event.what);
    CHECK(ends == std::vector{way.event});
    CHECK(fixture.events->all.front().what == kind::acquired);
  }
}

TEST_CASE_METHOD(engine_fixture, "a re-entry is told as one, with the count, and begins no hold") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice, {.ttl = 1min}));
  reenters();
  CHECK(heard() == "acquired reentered");
  CHECK(last_event().count == 2);
  CHECK(last_event().owner == alice);
  CHECK(last_event().id == uuid + ":1");
  CHECK(last_event().ttl == 1min);
  unlock(inner);
  reenters();
  unlock(outer);
  frees();
  CHECK(heard() == "released");
  CHECK(last_event().count == 0);
}

TEST_CASE_METHOD(engine_fixture, "an event of a hold says whose it is, its token, its TTL and how long") {
  const owner alice;
  auto wanted = fenced(alice);
  wanted.options.ttl = 20s;
  const auto a = lock("a", wanted);
  advance(20ms);
  grants_token(7);
  REQUIRE(heard() == "acquired");
  const auto check_whose = [&] {
    CHECK(last_event().name == "a");
    CHECK(last_event().owner == alice);
    CHECK(last_event().id == uuid + ":1");
    CHECK(last_event().token == 7U);
    CHECK(last_event().ttl == 20s);
  };
  check_whose();
  CHECK(last_event().waited == 20ms);
  CHECK(last_event().count == 1);
  advance(5s);
  SECTION("released") {
    unlock(a);
    advance(10ms);
    frees();
    CHECK(last_event().what == kind::released);
    CHECK(last_event().held == 5s);
  }
  SECTION("suspended") {
    link_down();
    CHECK(last_event().what == kind::suspended);
    CHECK(last_event().held == 5s);
  }
  SECTION("lost") {
    advance(20s);
    CHECK(last_event().what == kind::lost);
  }
  check_whose();
}

TEST_CASE("a loss says how it is known") {
  struct way {
    std::string detail;
    void (*lose)(engine_fixture&, const lock_call&);
    lock_options options{};
  };
  const std::string gone = "Redis answered that its key is gone or another's";
  const way ways[] = {
      {gone,
       [](engine_fixture& fixture, const lock_call&) {
         fixture.advance(10s);
         fixture.confirms_nothing();
       }},
      {gone + ", after force_unlock() by this client",
       [](engine_fixture& fixture, const lock_call&) {
         fixture.force_unlock("a");
         fixture.answers(replies::integer(1));
         fixture.advance(0ms);
         fixture.confirms_nothing();
       }},
      {"its validity was over, and Redis had not confirmed it again: fake:6379: Connection refused",
       [](engine_fixture& fixture, const lock_call&) {
         fixture.server.why_silent.detail = "fake:6379: Connection refused";
         fixture.link_down();
         fixture.advance(1min);
       }},
      {"its validity was over, and Redis had not confirmed it again",
       [](engine_fixture& fixture, const lock_call&) {
         fixture.clock.skip(1min);
         fixture.advance(0ms);
       }},
      {"its TTL was over, and nobody wanted it to be renewed",
       [](engine_fixture& fixture, const lock_call&) { fixture.advance(5s); },
       {.ttl = 5s}},
      {"its TTL was over, and nobody wanted it to be renewed",
       [](engine_fixture& fixture, const lock_call&) {
         for (int i = 0; i < 3; ++i) {
           fixture.advance(10s);
           if (fixture.in_flight()) fixture.confirms();
         }
         fixture.advance(1min);
       },
       {.max_hold = 5s}},
  };
  for (const auto& way : ways) {
    CAPTURE(way.detail);
    engine_fixture fixture;
    const auto a = fixture.hold("a", with(way.options));
    way.lose(fixture, a);
    const auto loss = std::find_if(fixture.events->all.begin(), fixture.events->all.end(),
                                   [](const auto& event) { return event.what == kind::lost; });
    REQUIRE(loss != fixture.events->all.end());
    CHECK(loss->reason == errc::lost);
    CHECK(loss->detail == way.detail);
    const auto unlocking = fixture.unlock(a);
    CHECK(unlocking.failed_with(errc::lost));
    CHECK(unlocking.detail() == way.detail);
  }
}

TEST_CASE_METHOD(engine_fixture, "an unlock that finds the key gone says so, and whether it was forced") {
  const auto a = hold("a");
  const bool forced = GENERATE(false, true);
  if (forced) {
    force_unlock("a");
    answers(replies::integer(1));
  }
  const auto unlocking = unlock(a);
  not_yours();
  CHECK(unlocking.failed_with(errc::lost));
  CHECK((unlocking.detail().find("force_unlock()") != std::string::npos) == forced);
  CHECK(unlocking.detail().starts_with("Redis answered that its key is gone or another's"));
}

TEST_CASE_METHOD(engine_fixture, "an orderly shutdown is no loss and no failure") {
  const owner alice, bob;
  const auto a = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto waiting = lock("a", by(bob)), asking = lock("b");
  heard();
  const auto closing = close();
  while (in_flight()) frees();
  CHECK(closing.succeeded());
  CHECK(waiting.failed_with(errc::shutting_down));
  std::map<kind, int> counts;
  for (; events->read < events->all.size(); ++events->read) ++counts[events->all[events->read].what];
  CHECK(counts == std::map<kind, int>{{kind::closed, 1}, {kind::acquire_cancelled, 2}, {kind::released_late, 2}});
}

TEST_CASE_METHOD(engine_fixture, "a lease that was destroyed in the resumption that brought it is told, and no other") {
  const owner alice;
  const auto a = hold("a", by(alice));
  heard();
  const auto hand_over = [&](const lock_call& to) {
    to.value()->handed_over_at = clock.now().time_since_epoch().count();
  };
  const auto destroy = [&](const lock_call& dropped) {
    dropped.value()->note_drop();
    drop(dropped);
  };
  SECTION("at once") {
    hand_over(a);
    clock.skip(10us - 1ns);
    destroy(a);
    CHECK(heard() == "dropped_at_once");
    CHECK(last_event().owner == alice);
    frees();
    CHECK(heard() == "released");
  }
  SECTION("not after a while") {
    hand_over(a);
    clock.skip(10us);
    destroy(a);
    frees();
    CHECK(heard() == "released");
  }
  SECTION("not in another resumption") {
    destroy(a);
    frees();
    CHECK(heard() == "released");
  }
  SECTION("not when it was asked something") {
    hand_over(a);
    a.value()->note_use();
    destroy(a);
    frees();
    CHECK(heard() == "released");
  }
  SECTION("not when its hold goes on") {
    const auto inner = lock("a", by(alice));
    reenters();
    hand_over(inner);
    destroy(inner);
    reenters();
    CHECK(heard() == "reentered");
  }
}

TEST_CASE_METHOD(engine_fixture, "a coroutine that waits for what it has locked without owner is told of at once") {
  const int one = 0;
  const auto a = hold("a", of(&one));
  heard();
  lock("a", of(&one));
  CHECK(heard() == "waiting_for_ourselves");
  CHECK(last_event().name == "a");
}

TEST_CASE_METHOD(engine_fixture,
                 "a wait for a hold of this client is a hint where a coroutine of the two is not known") {
  const int one = 0;
  const auto known = GENERATE_COPY(values<const void*>({nullptr, &one}));
  const auto a = hold("a", of(known));
  heard();
  lock("a", of(known ? nullptr : &one));
  lock("a");
  CHECK(heard() == "perhaps_waiting_for_ourselves perhaps_waiting_for_ourselves");
  CHECK(last_event().name == "a");
}

TEST_CASE_METHOD(engine_fixture, "the next hold is that of the coroutine that waited for it") {
  const int one = 0, other = 0;
  const auto a = hold("a", of(&one));
  const auto next = lock("a", of(&other));
  unlock(a);
  frees();
  grants();
  REQUIRE(next.granted());
  heard();
  lock("a", of(&one));
  CHECK(heard().empty());
  lock("a", of(&other));
  CHECK(heard() == "waiting_for_ourselves");
}

TEST_CASE_METHOD(engine_fixture, "no wait for ourselves is told of where there is none") {
  const owner alice;
  const int one = 0, other = 0;
  const auto a = hold("a", of(&one)), b = hold("b", by(alice));
  heard();
  try_lock("a", of(&one));
  try_lock_for("a", 1s, of(&one));
  lock("a", of(&other));
  lock("a", by(alice));
  lock("b", of(&one));
  lock("c", of(&one));
  CHECK(heard().find("waiting_for_ourselves") == std::string::npos);
}

TEST_CASE("without an observer nothing is told") {
  engine_fixture fixture;
  fixture.settings.observer = nullptr;
  const auto a = fixture.hold("a");
  fixture.unlock(a);
  fixture.frees();
  CHECK(fixture.events->all.empty());
}
