// SPDX-License-Identifier: BSL-1.0
// Leases that are unlocked or dropped: what is sent, and what the caller is answered.
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

const std::string free_a = "release(a; publish, redisson_lock__channel:{a}, #1)";

}  // namespace

TEST_CASE_METHOD(engine_fixture, "the last unlock frees by one command and disarms before it is sent") {
  const auto a = hold("a");
  advance(3s);
  const auto unlocking = unlock(a);
  CHECK(state(a) == lease_state::released);
  CHECK_FALSE(a.value()->of->exclusive());
  CHECK(last_sent() == free_a);
  CHECK(server.last().timeout == 500ms);
  frees();
  CHECK(unlocking.succeeded());
  CHECK(heard() == "acquired released");
  CHECK(last_event().held == 3s);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture,
                 "an unlock that is not the last tells the count and leaves the TTL that is left open") {
  const owner alice;
  const auto outer = hold("a", by(alice, {.ttl = 10s}));
  const auto inner = lock("a", by(alice));
  reenters();
  const auto unlocking = unlock(inner);
  CHECK(last_sent() == "set_hold_count(a; 29995, #1, 1, 30000)");
  reenters();
  CHECK(unlocking.succeeded());
  CHECK(state(inner) == lease_state::released);
  CHECK(state(outer) == lease_state::held);
}

TEST_CASE_METHOD(engine_fixture, "leases of one hold may be unlocked in any order") {
  const owner alice;
  const auto outer = hold("a", by(alice));
  const auto inner = lock("a", by(alice));
  reenters();
  unlock(outer);
  reenters();
  CHECK(state(inner) == lease_state::held);
  unlock(inner);
  CHECK(last_sent() == free_a);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "the last unlock does not wait for the count of the one before it") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto first = unlock(inner), last = unlock(outer);
  CHECK(first.succeeded());
  CHECK(last_sent() == free_a);
  CHECK(in_flight() == 2);
  reenters();
  CHECK(last.waits());
  frees();
  CHECK(last.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a second unlock answers not_held and sends nothing") {
  const auto a = hold("a");
  unlock(a);
  CHECK(unlock(a).failed_with(errc::not_held));
  frees();
  CHECK(unlock(a).failed_with(errc::not_held));
  CHECK(server.count() == 2);
}

TEST_CASE_METHOD(engine_fixture, "an unlock that finds the key gone or another's says lost") {
  const auto a = hold("a");
  const auto unlocking = unlock(a);
  not_yours();
  CHECK(unlocking.failed_with(errc::lost));
  CHECK(heard() == "acquired lost");
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "an unlock after a loss says lost and sends nothing") {
  const auto a = hold("a");
  advance(10s);
  confirms_nothing();
  CHECK(unlock(a).failed_with(errc::lost));
  CHECK(server.count() == 2);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture,
                 "an unlock after the validity says lost though nobody had noticed and frees what may be left") {
  const auto a = hold("a");
  clock.skip(29'698ms);
  CHECK(unlock(a).failed_with(errc::lost));
  CHECK(last_sent() == free_a);
  CHECK(heard() == "acquired lost");
  frees();
  CHECK(heard() == "released_late");
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "an unlock whose second copy finds nothing has released before the validity ends") {
  const auto a = hold("a");
  const auto unlocking = unlock(a);
  fails(errc::unconfirmed);
  advance(0ms);
  not_yours();
  CHECK(unlocking.succeeded());
  CHECK(heard() == "acquired released");
}

TEST_CASE_METHOD(engine_fixture, "an unlock whose second copy finds nothing is unconfirmed after the validity") {
  const auto a = hold("a", with({.ttl = 10s}));
  advance(9800ms);
  const auto unlocking = unlock(a);
  advance(90ms);
  fails(errc::unconfirmed);
  advance(10ms);
  not_yours();
  CHECK(unlocking.failed_with(errc::unconfirmed));
}

TEST_CASE_METHOD(engine_fixture,
                 "an unlock without an answer is unconfirmed on time and goes on until it is answered") {
  const auto a = hold("a");
  const auto b = lock("a");
  const auto unlocking = unlock(a);
  link_down();
  advance(500ms);
  CHECK(unlocking.failed_with(errc::unconfirmed));
  CHECK_FALSE(locks->idle());
  advance(2s);
  b.cancel();
  heard();
  link_up();
  while (in_flight() > 1) answers(replies::nil());
  frees();
  CHECK(heard() == "released_late");
  advance(1s);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a release that is never answered gives up after one TTL") {
  const auto a = hold("a");
  unlock(a);
  link_down();
  advance(29s);
  CHECK_FALSE(locks->idle());
  heard();
  advance(3s);
  CHECK(heard() == "release_given_up");
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a release that arrives late wakes who waits here") {
  const auto a = hold("a");
  const auto b = lock("a");
  acknowledges("a");
  unlock(a);
  fails(errc::unconfirmed);
  advance(0ms);
  CHECK(sent("acquire") == 1);
  frees();
  CHECK(last_sent() == "acquire(a; 30000, #2)");
}

TEST_CASE_METHOD(engine_fixture, "the count of a partial unlock that finds no answer is left to the next change") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  CHECK(unlock(inner).succeeded());
  fails(errc::unconfirmed);
  CHECK(state(outer) == lease_state::held);
  CHECK(in_flight() == 0);
  lock("a", by(alice));
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
}

TEST_CASE_METHOD(engine_fixture, "what finds no answer is answered within one command timeout") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto renewal = renew(outer), forced = force_unlock("b");
  CHECK(in_flight() == 2);
  advance(200ms);
  for (int i = 0; i < 2; ++i) fails(errc::unconfirmed);  // each is sent again
  advance(300ms - 1ns);
  CHECK(in_flight() == 2);
  advance(1ns);
  CHECK(in_flight() == 0);
  CHECK(renewal.failed_with(errc::unreachable));
  CHECK(forced.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(engine_fixture, "what finds no answer until the command timeout is not sent again") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto partial = unlock(inner);
  advance(500ms);
  CHECK(partial.succeeded());
  CHECK(sent("set_hold_count") == 2);
  CHECK(in_flight() == 0);
}

TEST_CASE_METHOD(engine_fixture, "a partial unlock that is refused has counted here all the same") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto unlocking = unlock(inner);
  errs("OOM command not allowed when used memory > 'maxmemory'.");
  CHECK(unlocking.succeeded());
  unlock(outer);
  CHECK(last_sent() == free_a);
}

TEST_CASE_METHOD(engine_fixture, "a partial unlock of what is not ours any more ends the hold a round trip later") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  CHECK(unlock(inner).succeeded());
  answers(replies::integer(0));
  CHECK(state(outer) == lease_state::lost);
  CHECK(unlock(outer).failed_with(errc::lost));
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture,
                 "a partial unlock of a key that is no lock any more ends the hold a round trip later") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  CHECK(unlock(inner).succeeded());
  errs("WRONGTYPE Operation against a key holding the wrong kind of value");
  CHECK(state(outer) == lease_state::lost);
  CHECK(unlock(outer).failed_with(errc::corrupt_lock));
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a dropped lease is released with nobody waiting") {
  const auto a = hold("a");
  drop(a);
  CHECK(state(a) == lease_state::released);
  CHECK(last_sent() == free_a);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a dropped lease of a re-entered hold takes one from the count") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  drop(inner);
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  reenters();
  CHECK(unlock(inner.value()).failed_with(errc::not_held));
}

TEST_CASE_METHOD(engine_fixture, "a lost lease that is dropped sends nothing and frees the name") {
  const owner alice;
  const auto a = hold("a", by(alice));
  advance(10s);
  confirms_nothing();
  CHECK_FALSE(locks->idle());
  drop(a);
  CHECK(server.count() == 2);
  check_nothing_is_left();
}
