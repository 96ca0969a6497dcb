// SPDX-License-Identifier: BSL-1.0
// Renewals that a caller asks for.
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE_METHOD(engine_fixture, "renew raises to the TTL of the lease or the one given") {
  const auto a = hold("a", with({.ttl = 10s}));
  advance(5s);
  const auto plain = renew(a);
  CHECK(last_sent() == "renew(a; 10000, #1)");
  advance(100ms);
  confirms();
  CHECK(plain.succeeded());
  CHECK(a.value()->of->left() == 10s - 102ms - 100ms);
  renew(a, 20s);
  CHECK(last_sent() == "renew(a; 20000, #1)");
  confirms();
  CHECK(a.value()->of->left() == 20s - 202ms);
  renew(a, 1s);
  confirms();
  CHECK(a.value()->of->left() == 20s - 202ms);
}

TEST_CASE_METHOD(engine_fixture, "a renew without an answer is tried twice and leaves the lease held") {
  const auto a = hold("a");
  const auto renewal = renew(a);
  fails(errc::unconfirmed);
  CHECK(renewal.waits());
  fails(errc::unconfirmed);
  CHECK(renewal.failed_with(errc::unreachable));
  CHECK(state(a) == lease_state::held);
  CHECK(server.count() == 3);
}

TEST_CASE_METHOD(engine_fixture, "the second try of a renew counts from its own send") {
  const auto a = hold("a", with({.ttl = 10s}));
  const auto renewal = renew(a);
  advance(300ms);
  fails(errc::unconfirmed);
  confirms();
  CHECK(renewal.succeeded());
  CHECK(a.value()->of->left() == 10s - 102ms);
}

TEST_CASE_METHOD(engine_fixture, "a renew of what is not ours any more says lost") {
  const auto a = hold("a");
  const auto renewal = renew(a);
  confirms_nothing();
  CHECK(renewal.failed_with(errc::lost));
  CHECK(state(a) == lease_state::lost);
  CHECK(renew(a).failed_with(errc::lost));
}

TEST_CASE_METHOD(engine_fixture, "a renew that is confirmed after the validity says lost") {
  const auto a = hold("a", with({.ttl = 10s}));
  const auto renewal = renew(a);
  timers.on_step = nullptr;
  server.reply_last(replies::integers({1}));
  clock.skip(10s);
  run();
  CHECK(renewal.failed_with(errc::lost));
  CHECK_FALSE(a.value()->of->exclusive());
}

TEST_CASE_METHOD(engine_fixture, "a renew after the validity finds the loss before it sends") {
  const auto a = hold("a", with({.ttl = 10s}));
  clock.skip(10s);
  CHECK(renew(a).failed_with(errc::lost));
  CHECK(sent("renew") == 0);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
}

TEST_CASE_METHOD(engine_fixture, "a renew of a released lease says not_held") {
  const auto a = hold("a");
  const auto renewal = renew(a);
  const auto unlocking = unlock(a);
  confirms();
  CHECK(renewal.failed_with(errc::not_held));
  CHECK(renew(a).failed_with(errc::not_held));
  frees();
  CHECK(unlocking.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a renew passes on why Redis refused") {
  const auto a = hold("a");
  const auto renewal = renew(a);
  errs("NOPERM this user has no permissions");
  CHECK(renewal.failed_with(errc::no_permission));
  CHECK(state(a) == lease_state::held);
}
