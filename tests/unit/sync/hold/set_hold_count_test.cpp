// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/set_hold_count.hpp"

#include "support/no_memory.hpp"
#include "support/skip.hpp"
#include "unit/sync/engine_fixture.hpp"
#include "unit/sync/quorum_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// More than a hold has left: a re-entry has to ask Redis for it.
constexpr lock_options longer{.ttl = 30s};

/// Alice holds "a" once.
struct fixture : engine_fixture {
  const owner alice;
  const lock_call outer = hold("a", by(alice));
  const detail::hold& held = *outer.value()->of;

  fixture() { heard(); }
};

}  // namespace

TEST_CASE_METHOD(fixture, "a nested lock has its lease at once, and Redis hears of it") {
  const auto inner = lock("a", by(alice));
  CHECK(inner.granted());
  CHECK(inner.value()->of == outer.value()->of);
  CHECK(heard() == "reentered");
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
  reenters();
  CHECK(in_flight() == 0);
  CHECK(unlock(inner).succeeded());
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  reenters();
  unlock(outer);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "every way to lock has its lease at once") {
  CHECK(try_lock("a", by(alice)).granted());
  CHECK(try_lock_for("a", 1s, by(alice)).granted());
  CHECK(try_lock_for("a", 0s, by(alice)).granted());
}

TEST_CASE("a nested lock asks Redis where it wants more than its hold has") {
  struct row {
    lock_options outer;
    nanoseconds later;
    lock_options inner;
    bool at_once;
  };
  const auto drift = 2ms;
  const row all[] = {
      {{}, 0s, {}, true},
      {{}, 0s, {.ttl = 29s}, true},
      {{}, 0s, {.ttl = 30s}, false},  // the hold is valid for less, by the drift
      {{}, 0s, {.ttl = 20s, .renew = true}, true},
      {{}, 0s, {.ttl = 31s, .renew = true}, false},
      {{.ttl = 30s}, 0s, {}, false},  // nobody renews it
      {{.ttl = 30s}, 0s, {.ttl = 10s}, true},
      {{.ttl = 30s}, 20s, {.ttl = 10s}, false},
      {{.ttl = 1s, .renew = true}, 333ms - drift, {.ttl = 1s, .renew = true}, false},
      {{.ttl = 1s, .renew = true}, 320ms - drift, {.ttl = 1s, .renew = true}, true},
      {{.max_hold = 5s}, 10s, {}, false},  // it is renewed no more
      {{.max_hold = 5s}, 1s, {}, true},
      {{.min_replicas = 0}, 0s, {.min_replicas = 1}, false},
  };
  for (const auto& r : all) {
    CAPTURE(&r - all);
    engine_fixture f;
    const owner alice;
    f.hold("a", by(alice, r.outer));
    f.clock.skip(r.later);
    CHECK(f.lock("a", by(alice, r.inner)).granted() == r.at_once);
  }
}

TEST_CASE_METHOD(fixture, "a nested lock asks Redis while its hold is in question") {
  SECTION("suspended") {
    link_down();
    REQUIRE(held.state() == lease_state::suspended);
  }
  SECTION("broken by force") {
    force_unlock("a");
    answers(replies::integer(1));
  }
  CHECK_FALSE(lock("a", by(alice)).granted());
}

TEST_CASE_METHOD(fixture, "behind its last unlock a nested lock waits like anybody") {
  const auto u = unlock(outer);
  CHECK(lock("a", by(alice)).waits());
}

TEST_CASE_METHOD(fixture, "counts are told one at a time, and the latest alone") {
  std::vector<lock_call> inner;
  for (int i = 0; i < 10; ++i) inner.push_back(lock("a", by(alice)));
  unlock(inner.back());
  CHECK(server.count() == 2);
  reenters();
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 10)");
  CHECK(server.count() == 3);
  reenters();
  CHECK(in_flight() == 0);
}

TEST_CASE_METHOD(fixture, "each nested lock is told, also where it is over before that") {
  for (int i = 0; i < 3; ++i) unlock(lock("a", by(alice)));
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");  // as it was when the first one was written
  reenters();
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  reenters();
  CHECK(in_flight() == 0);
  CHECK(server.count() == 3);
}

TEST_CASE_METHOD(fixture, "a nested lock whose count Redis has already is asked for all the same") {
  lock("a", by(alice));
  const auto second = lock("a", by(alice));  // while the count of the first is on its way
  unlock(second);
  reenters();
  REQUIRE(last_sent() == "set_hold_count(a; 30000, #1, 2)");
  CHECK(server.count() == 3);
  answers(replies::integer(0));
  CHECK(held.state() == lease_state::lost);
}

TEST_CASE_METHOD(fixture, "a nested lock is asked for also where the count before it found no answer") {
  lock("a", by(alice));
  lock("a", by(alice));  // while the count of the first is on its way
  SECTION("refused") { errs("OOM command not allowed when used memory > 'maxmemory'."); }
  SECTION("not answered") { fails(errc::unconfirmed); }
  REQUIRE(in_flight() == 1);
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 3)");
  answers(replies::integer(0));
  CHECK(held.state() == lease_state::lost);
}

TEST_CASE_METHOD(fixture, "a loss that a count finds out is told a round trip after the nested lock") {
  const auto inner = lock("a", by(alice));
  CHECK(inner.granted());
  SECTION("it is not ours") {
    answers(replies::integer(0));
    CHECK(unlock(inner).failed_with(errc::lost));
  }
  SECTION("it is no lock any more") {
    errs("WRONGTYPE Operation against a key holding the wrong kind of value");
    CHECK(unlock(inner).failed_with(errc::corrupt_lock));
  }
  CHECK(held.state() == lease_state::lost);
  CHECK(heard() == "reentered lost");
  unlock(outer);
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "a count that is confirmed extends the validity, as a renewal does") {
  advance(1s);
  const auto asked = clock.now();
  lock("a", by(alice));
  advance(100ms);
  reenters();
  CHECK(held.valid_until() == asked + 30s - 302ms);
  advance(9s);
  CHECK(sent("renew") == 0);
}

TEST_CASE_METHOD(fixture, "a count that Redis refuses changes nothing, and is told with the next") {
  const auto inner = lock("a", by(alice));
  SECTION("refused") { errs("OOM command not allowed when used memory > 'maxmemory'."); }
  SECTION("not answered") { fails(errc::unconfirmed); }
  CHECK(in_flight() == 0);
  CHECK(held.state() == lease_state::held);
  CHECK(unlock(inner).succeeded());
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");  // it may be counted twice
}

TEST_CASE_METHOD(fixture, "once the last unlock is sent no count is told any more, and none that was means anything") {
  const auto inner = lock("a", by(alice)), waiting = lock("a");
  unlock(inner);
  const auto u = unlock(outer);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  SECTION("answered") { reenters(); }
  SECTION("not ours: what comes behind it will say so") { answers(replies::integer(0)); }
  SECTION("not answered") { fails(errc::unconfirmed); }
  SECTION("refused") { errs("WRONGTYPE Operation against a key holding the wrong kind of value"); }
  CHECK(in_flight() == 1);
  frees();
  CHECK(u.succeeded());
  grants();
  CHECK(waiting.granted());
  CHECK(waiting.value()->state() == lease_state::held);
}

TEST_CASE_METHOD(fixture, "a count that is answered when the next hold has begun does not touch it") {
  lock("a", by(alice));
  const auto count = server.open().front();
  unlock_all();
  server.reply(server.open().at(1), replies::integer(0));
  const auto next = lock("a", by(alice));
  run();
  server.reply(server.open().at(1), replies::nil());
  run();
  REQUIRE(next.granted());
  server.reply(count, replies::integer(0));
  run();
  CHECK(next.value()->state() == lease_state::held);
}

TEST_CASE_METHOD(fixture, "a count that was sent before a doubt does not extend the validity") {
  const auto valid = held.valid_until();
  advance(1s);
  lock("a", by(alice));
  outer.value()->of->doubt(20ms);
  reenters();  // it ran before the lock was broken, perhaps
  CHECK(held.valid_until() == valid);
  advance(20ms);
  CHECK(last_sent() == "renew(a; 30000, #1)");
}

TEST_CASE_METHOD(fixture, "a re-entry that asks, or a renewal by hand, does not put off what settles a doubt") {
  SECTION("a re-entry") { lock("a", by(alice, longer)); }
  SECTION("a renewal") { renew(outer); }
  outer.value()->of->doubt(20ms);
  sent("renew") == 0 ? reenters() : confirms();
  advance(20ms);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  CHECK(in_flight() == 1);
}

TEST_CASE_METHOD(engine_fixture, "a count that waited to be written claims no more than max_hold and a TTL") {
  const owner alice;
  const auto a = hold("a", by(alice, {.max_hold = 11s}));
  advance(10s);
  confirms();
  advance(999ms);
  server.block();
  lock("a", by(alice, {.max_hold = 1ms}));
  advance(400ms);
  server.unblock();
  reenters();
  CHECK(a.value()->of->valid_until() <= a.value()->of->granted_at + 11s + 30s - 302ms);
}

TEST_CASE("a nested lock that finds no memory, or none for its count, leaves nothing under way") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  constexpr std::size_t ours = 12;  // then those of the link that is played
  for (std::size_t n = 0; n < ours; ++n) {
    INFO("allocation " << n << " fails");
    const guarded_blocks guard;
    fixture f;
    lock_call inner;
    bool refused = false;
    {
      const failing_allocations here(n);
      try {
        inner = f.lock("a", by(f.alice));
      } catch (const std::bad_alloc&) {
        refused = true;
      }
    }
    CHECK(f.held.count() == (refused ? 1 : 2));
    while (f.in_flight() > 0) f.reenters();
    if (!refused) f.unlock(inner);
    while (f.in_flight() > 0) f.reenters();
    CHECK_FALSE(f.held.on->counted.under_way);
    CHECK(f.held.on->counted.leases == 1);
  }
}

TEST_CASE_METHOD(fixture, "a doubt is over when a renewal after it is confirmed, and not by one before it") {
  outer.value()->of->doubt(20ms);
  CHECK(try_lock("a", by(alice)).waits());
  reenters();
  CHECK(try_lock("a", by(alice)).waits());
  reenters();
  advance(20ms);
  REQUIRE(last_sent() == "renew(a; 30000, #1)");
  outer.value()->of->doubt(20ms);  // perhaps after it had run
  confirms();
  CHECK(try_lock("a", by(alice)).waits());
  reenters();
  advance(20ms);
  confirms();
  CHECK(try_lock("a", by(alice)).granted());
}

TEST_CASE_METHOD(fixture, "a count that is answered when the validity is over confirms nothing") {
  lock("a", by(alice));
  clock.skip(30s);
  reenters();
  CHECK(held.state() == lease_state::lost);
  CHECK(heard() == "reentered lost");
}

TEST_CASE_METHOD(fixture, "a re-entry that asks Redis tells the count also for an unlock meanwhile") {
  const auto second = lock("a", by(alice));
  reenters();
  const auto third = lock("a", by(alice, longer));
  REQUIRE(last_sent() == "set_hold_count(a; 30000, #1, 3)");
  CHECK(unlock(second).succeeded());
  CHECK(in_flight() == 1);
  reenters();
  CHECK(third.granted());
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
}

TEST_CASE_METHOD(engine_fixture, "a count raises no TTL where the hold is renewed no more") {
  const owner alice;
  const auto a = hold("a", by(alice, {.max_hold = 5s}));
  advance(10s);
  confirms();  // its renewal is paused
  REQUIRE(a.value()->of->renewal_paused());
  const auto valid = a.value()->of->valid_until();
  advance(1s);
  lock("a", by(alice, {.ttl = 5s}));
  CHECK(last_sent().starts_with("set_hold_count(a; 18"));
  reenters();
  CHECK(a.value()->of->valid_until() == valid);
}

TEST_CASE_METHOD(quorum_fixture, "the counts of nested locks do not ask a primary that lags more often") {
  const auto outer = granted("a");
  advance(10s);
  answer({0, 1, 2, 3});
  const auto refuse = [&] {
    for (const auto open : at[4]->open()) at[4]->reply(open, replies::error("OOM no"));
    run();
  };
  refuse();
  const auto renewals = [&] {
    std::size_t n = 0;
    for (std::size_t i = 0; i < at[4]->count(); ++i) n += at[4]->sent(i).argv[1] == detail::lua::renew.sha1;
    return n;
  };
  const auto before = renewals();
  REQUIRE(before > 0);
  for (int i = 0; i < 20; ++i) {
    const auto inner = nested(outer);
    REQUIRE(inner.granted());
    answer({0, 1, 2, 3});
    refuse();
    unlock(inner);
    answer({0, 1, 2, 3});
    refuse();
    advance(1ms);
  }
  CHECK(renewals() - before <= 1);
  unlock(outer);
  answer_all();
}
