// SPDX-License-Identifier: BSL-1.0
// A release that finds no answer: how long it is repeated, and how long its unlock waits.
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE_METHOD(
    engine_fixture,
    "a release goes on until the key must be gone, also where a renewal gave it more than its lease's TTL") {
  const auto lease = hold("a", with({.ttl = 200ms}));
  const auto longer = renew(lease, 30s);
  confirms();
  REQUIRE(longer.succeeded());
  const auto unlocking = unlock(lease);
  for (int second = 0; second < 10; ++second) {
    fails(errc::unreachable);
    advance(1s);
  }
  CHECK(unlocking.failed_with(errc::unconfirmed));
  CHECK(in_flight() == 1);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(
    engine_fixture,
    "a release goes on until the key must be gone, also where a re-entry that is queued before it gave it more") {
  const owner alice;
  const auto lease = hold("a", by(alice, {.ttl = 200ms, .renew = false}));
  const auto first = try_lock("a", by(alice, {.ttl = 200ms, .renew = false}));
  const auto longer = try_lock("a", by(alice, {.ttl = 30s}));
  const auto unlocking = unlock(lease);  // behind both
  fails(errc::unconfirmed);
  fails(errc::unconfirmed);  // it may have run: the key may live for 30 s
  CHECK(longer.failed_with(errc::unreachable));
  for (int second = 0; second < 10; ++second) {
    REQUIRE(in_flight() == 1);
    fails(errc::unreachable);
    advance(1s);
  }
  CHECK(unlocking.failed_with(errc::unconfirmed));
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture,
                 "a release goes on until the key must be gone, also where what gave it more ran late") {
  play();
  const auto lease = lock("a", with({.ttl = 200ms, .renew = true}));
  run();
  server.on_command = nullptr;
  const auto asked = clock.now();
  const auto longer = renew(lease, 30s);
  const auto late = server.sent(server.count() - 1);
  play();
  advance(499ms);
  obey(late);
  advance(1ms);
  CHECK(longer.failed_with(errc::unreachable));
  advance(asked + 29'900ms - clock.now());
  server.on_command = nullptr;
  const auto unlocking = unlock(lease);
  while (clock.now() < asked + 30s + 499ms) {
    REQUIRE_FALSE(locks->idle());
    if (in_flight()) fails(errc::unreachable);
    advance(10ms);
  }
}

TEST_CASE_METHOD(engine_fixture,
                 "an unlock is answered within its own lease's command budget, whatever else was sent for the key") {
  const owner alice;
  const auto lease = hold("a", by(alice, {.ttl = 200ms, .renew = false}));
  const auto longer = try_lock("a", by(alice, {.ttl = 30s}));
  fails(errc::unreachable);
  const auto began = clock.now();
  const auto unlocking = unlock(lease);
  while (unlocking.waits()) REQUIRE(timers.advance_to_next());
  CHECK(unlocking.failed_with(errc::unconfirmed));
  CHECK(clock.now() - began == 40ms);
}

TEST_CASE_METHOD(engine_fixture,
                 "an unlock is answered within one command timeout, also behind a re-entry that is not answered") {
  const owner alice;
  const auto outer = hold("a", by(alice));
  const auto inner = lock("a", by(alice));
  reenters();
  const auto stuck = try_lock("a", by(alice, {.ttl = 30s}));
  const auto began = clock.now();
  SECTION("the last one: unconfirmed, and it goes on") {
    const auto unlocking = unlock(inner.value()), last = unlock(outer);
    while (last.waits()) REQUIRE(timers.advance_to_next());
    CHECK(unlocking.succeeded());
    CHECK(last.failed_with(errc::unconfirmed));
    CHECK(clock.now() - began == 500ms);
    CHECK(stuck.failed_with(errc::unreachable));
    CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
    frees();
    check_nothing_is_left();
  }
  SECTION("not the last one: at once") { CHECK(unlock(inner.value()).succeeded()); }
}

TEST_CASE_METHOD(engine_fixture,
                 "a release goes on until the key must be gone, also where an abandoned re-entry gave it more") {
  const owner alice;
  const auto lease = lock("a", by(alice, {.ttl = 200ms, .renew = false}));
  grants();
  const auto inner = lock("a", by(alice, {.ttl = 30s}));
  inner.cancel();
  reenters();
  reenters();
  const auto unlocking = unlock(lease);
  for (int second = 0; second < 10; ++second) {
    fails(errc::unreachable);
    advance(1s);
  }
  CHECK(unlocking.failed_with(errc::unconfirmed));
  CHECK(in_flight() == 1);
  frees();
  check_nothing_is_left();
}
