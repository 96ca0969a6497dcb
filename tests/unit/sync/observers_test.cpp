// SPDX-License-Identifier: BSL-1.0
// Events of holds and waits, and the words that say why.
#include <map>

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("each acquisition ends in exactly one event, whatever ends it") {
  struct way {
    const char* what;
    void (*end)(engine_fixture&, const lock_call&);
    kind told;
  };
  const way ways[] = {
      {"unlocked",
       [](engine_fixture& f, const lock_call& a) {
         f.unlock(a);
         f.frees();
       },
       kind::released},
      {"dropped",
       [](engine_fixture& f, const lock_call& a) {
         f.drop(a);
         f.frees();
       },
       kind::released},
      {"its release is answered late",
       [](engine_fixture& f, const lock_call& a) {
         f.unlock(a);
         f.advance(1s);
         f.frees();
       },
       kind::release_failed},
      {"its release is never answered",
       [](engine_fixture& f, const lock_call& a) {
         f.unlock(a);
         f.link_down();
       },
       kind::release_failed},
      {"its release is refused",
       [](engine_fixture& f, const lock_call& a) {
         f.unlock(a);
         f.errs("NOPERM this user has no permissions");
       },
       kind::release_failed},
      {"its release finds it gone",
       [](engine_fixture& f, const lock_call& a) {
         f.unlock(a);
         f.not_yours();
       },
       kind::lost},
      {"its renewal finds it gone, and then it is unlocked",
       [](engine_fixture& f, const lock_call& a) {
         f.advance(10s);
         f.confirms_nothing();
         f.unlock(a);
       },
       kind::lost},
      {"its validity ends, and then it is dropped",
       [](engine_fixture& f, const lock_call& a) {
         f.link_down();
         f.advance(1min);
         f.drop(a);
       },
       kind::lost},
      {"its client is closed",
       [](engine_fixture& f, const lock_call& a) {
         f.close();
         f.frees();
         f.unlock(a);
       },
       kind::closed},
      {"its client is closed, and Redis is away",
       [](engine_fixture& f, const lock_call&) {
         f.link_down();
         f.close(100ms);
       },
       kind::closed},
      {"its client is abandoned", [](engine_fixture& f, const lock_call&) { f.locks->abandon(); }, kind::closed},
  };
  for (const auto& w : ways) {
    CAPTURE(w.what);
    engine_fixture f;
    const auto a = f.hold("a");
    w.end(f, a);
    f.advance(2min);
    std::vector<kind> ends;
    for (const auto& e : f.events->all)
      if (ends_hold(e.what)) ends.push_back(e.what);
    CHECK(ends == std::vector{w.told});
    CHECK(f.events->all.front().what == kind::acquired);
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
  auto how = fenced(alice);
  how.options.ttl = 20s;
  const auto a = lock("a", how);
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
    std::string said;
    void (*lose)(engine_fixture&, const lock_call&);
    lock_options options{};
  };
  const std::string gone = "Redis answered that its key is gone or another's";
  const way ways[] = {
      {gone,
       [](engine_fixture& f, const lock_call&) {
         f.advance(10s);
         f.confirms_nothing();
       }},
      {gone + ", after force_unlock() by this client",
       [](engine_fixture& f, const lock_call&) {
         f.force_unlock("a");
         f.answers(replies::integer(1));
         f.advance(0ms);
         f.confirms_nothing();
       }},
      {"its validity was over, and Redis had not confirmed it again: fake:6379: Connection refused",
       [](engine_fixture& f, const lock_call&) {
         f.server.why_silent.detail = "fake:6379: Connection refused";
         f.link_down();
         f.advance(1min);
       }},
      {"its validity was over, and Redis had not confirmed it again",
       [](engine_fixture& f, const lock_call&) {
         f.clock.skip(1min);
         f.advance(0ms);
       }},
      {"its TTL was over, and nobody wanted it to be renewed",
       [](engine_fixture& f, const lock_call&) { f.advance(5s); },
       {.ttl = 5s}},
      {"its TTL was over, and nobody wanted it to be renewed",
       [](engine_fixture& f, const lock_call&) {
         for (int i = 0; i < 3; ++i) {
           f.advance(10s);
           if (f.in_flight()) f.confirms();
         }
         f.advance(1min);
       },
       {.max_hold = 5s}},
  };
  for (const auto& w : ways) {
    CAPTURE(w.said);
    engine_fixture f;
    const auto a = f.hold("a", with(w.options));
    w.lose(f, a);
    const auto told =
        std::find_if(f.events->all.begin(), f.events->all.end(), [](const auto& e) { return e.what == kind::lost; });
    REQUIRE(told != f.events->all.end());
    CHECK(told->reason == errc::lost);
    CHECK(told->detail == w.said);
    const auto u = f.unlock(a);
    CHECK(u.failed_with(errc::lost));
    CHECK(u.detail() == w.said);
  }
}

TEST_CASE_METHOD(engine_fixture, "an unlock that finds the key gone says so, and whether it was forced") {
  const auto a = hold("a");
  const bool forced = GENERATE(false, true);
  if (forced) {
    force_unlock("a");
    answers(replies::integer(1));
  }
  const auto u = unlock(a);
  not_yours();
  CHECK(u.failed_with(errc::lost));
  CHECK((u.detail().find("force_unlock()") != std::string::npos) == forced);
  CHECK(u.detail().starts_with("Redis answered that its key is gone or another's"));
}

TEST_CASE_METHOD(engine_fixture, "an orderly shutdown is no loss and no failure") {
  const owner alice, bob;
  const auto a = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto waiting = lock("a", by(bob)), asking = lock("b");
  heard();
  const auto c = close();
  while (in_flight()) frees();
  CHECK(c.succeeded());
  CHECK(waiting.failed_with(errc::shutting_down));
  std::map<kind, int> told;
  for (; events->told < events->all.size(); ++events->told) ++told[events->all[events->told].what];
  CHECK(told == std::map<kind, int>{{kind::closed, 1}, {kind::acquire_cancelled, 2}, {kind::released_late, 2}});
}

TEST_CASE_METHOD(engine_fixture, "a lease that was destroyed in the resumption that brought it is told, and no other") {
  const owner alice;
  const auto a = hold("a", by(alice));
  heard();
  const auto hand_over = [&](const lock_call& to) {
    to.value()->handed_over_at = clock.now().time_since_epoch().count();
  };
  const auto destroy = [&](const lock_call& which) {
    which.value()->note_drop();
    drop(which);
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
  engine_fixture f;
  f.settings.observer = nullptr;
  const auto a = f.hold("a");
  f.unlock(a);
  f.frees();
  CHECK(f.events->all.empty());
}
