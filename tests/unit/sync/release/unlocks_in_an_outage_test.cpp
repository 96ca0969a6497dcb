// SPDX-License-Identifier: BSL-1.0
// Unlocks of nested locks while Redis does not answer.
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct nested : engine_fixture {
  const owner alice;
  std::vector<lock_call> leases;

  void enter(const std::string& name, lock_options options = {}) {
    const bool again = std::any_of(leases.begin(), leases.end(), [&](const auto& lease) {
      return lease.value()->of->keys()->name == name && lease.value()->state() == lease_state::held;
    });
    leases.push_back(lock(name, by(alice, options)));
    again ? reenters() : grants();
    REQUIRE(leases.back().granted());
  }
  /// One after the other, the last one first, as their scopes end; the time that they take.
  nanoseconds unlock_all() {
    const auto began = clock.now();
    while (!leases.empty()) {
      const auto lease = leases.back();
      leases.pop_back();
      const auto unlocking = unlock(lease);
      while (unlocking.waits()) REQUIRE(timers.advance_to_next());
      const bool last = lease.value()->of->ended();
      CHECK(
          (last || lease.value()->of->count() == 0 ? unlocking.failed_with(errc::unconfirmed) : unlocking.succeeded()));
    }
    return clock.now() - began;
  }
  void heal_and_check_nothing_is_left() {
    play();
    link_up();
    while (in_flight() > 0) reenters();
    advance(1min);
    check_nothing_is_left();
  }
};

}  // namespace

TEST_CASE_METHOD(nested, "in an outage the unlocks of nested locks take one command timeout together") {
  const int names = GENERATE(1, 2, 4);
  const bool down = GENERATE(true, false);
  CAPTURE(names, down);
  for (int i = 0; i < 8; ++i) enter("n" + std::to_string(i * names / 8));
  if (down) link_down();
  CHECK(unlock_all() == 500ms);
  heal_and_check_nothing_is_left();
}

TEST_CASE_METHOD(nested, "in an outage the unlocks of nested locks of short TTLs take as long as the longest may") {
  enter("a", {.ttl = 10s});
  enter("b", {.ttl = 1s});
  enter("b", {.ttl = 1s});
  enter("c", {.ttl = 500ms});
  link_down();
  SECTION("the longest last") { CHECK(unlock_all() == 500ms); }
  SECTION("without the longest") {
    leases.erase(leases.begin());
    CHECK(unlock_all() == 200ms);
  }
}

TEST_CASE_METHOD(nested, "a server that answers and will not write costs nested unlocks one command timeout together") {
  for (const auto* name : {"a", "b", "c", "c"}) enter(name);
  std::vector<lock_call> held = std::exchange(leases, {});
  const auto began = clock.now();
  for (; !held.empty(); held.pop_back()) {
    const auto unlocking = unlock(held.back());
    while (unlocking.waits()) {
      while (in_flight() > 0) errs("MISCONF Errors writing to the AOF file: No space left on device");
      if (unlocking.waits()) REQUIRE(timers.advance_to_next());
    }
  }
  CHECK(clock.now() - began == 500ms);
  for (int i = 0; i < 3; ++i) {
    while (in_flight() == 0) REQUIRE(timers.advance_to_next());
    frees();
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(nested, "an unlock that begins long after an outage has cost another its time waits for nothing") {
  enter("a");
  enter("b");
  link_down();
  const auto first = unlock(leases[1]);
  advance(3s);
  CHECK(first.failed_with(errc::unconfirmed));
  const auto second = unlock(leases[0]);
  CHECK(second.failed_with(errc::unconfirmed));
  CHECK_FALSE(locks->idle());
  heal_and_check_nothing_is_left();
}

TEST_CASE_METHOD(nested, "an unlock waits its whole time again when there has been an answer") {
  enter("a");
  enter("b");
  const auto first = unlock(leases[1]);
  SECTION("to another command") {
    advance(500ms);
    const auto other = try_lock("c");
    server.reply_last(replies::nil());
    run();
    CHECK(other.granted());
  }
  SECTION("to the one that was late") {
    advance(520ms);
    frees();
  }
  SECTION("of a new connection") {
    link_down();
    advance(500ms);
    link_up();
  }
  CHECK(first.failed_with(errc::unconfirmed));
  advance(10ms);
  const auto second = unlock(leases[0]);
  advance(500ms - 1ns);
  CHECK(second.waits());
  server.reply_last(replies::integer(1));
  run();
  CHECK(second.succeeded());
}

TEST_CASE_METHOD(nested, "the silence of one server shortens no unlock of another") {
  lives_on(1, "elsewhere");
  enter("a");
  enter("b");
  enter("elsewhere");
  link_down(1);
  const auto first = unlock(leases[2]);
  advance(500ms);
  CHECK(first.failed_with(errc::unconfirmed));
  advance(1s);
  const auto second = unlock(leases[1]);
  advance(500ms - 1ns);
  CHECK(second.waits());
  server.reply_last(replies::integer(1));
  run();
  CHECK(second.succeeded());
  link_down(0);
  const auto third = unlock(leases[0]);
  advance(500ms - 1ns);
  CHECK(third.waits());
  advance(1ns);
  CHECK(third.failed_with(errc::unconfirmed));
}

TEST_CASE_METHOD(nested, "the silence of a server is not that of the one where the key has moved to") {
  enter("a");
  enter("b");
  lives_on(1, "b");
  link_down(0);
  const auto first = unlock(leases[0]);
  advance(100ms);
  move({"a"}, 1);
  REQUIRE(in_flight() == 1);
  advance(500ms);
  CHECK(first.failed_with(errc::unconfirmed));
  advance(1s);
  const auto second = unlock(leases[1]);
  advance(500ms - 1ns);
  CHECK(second.waits());
}

TEST_CASE_METHOD(nested, "a count that could not be lowered in an outage is lowered by what waits for nothing") {
  enter("a");
  enter("a");
  enter("a");
  enter("b");
  link_down();
  unlock(leases[3]);
  advance(500ms);
  const auto unlocking = unlock(leases[2]);
  CHECK(unlocking.succeeded());
  advance(100ms);
  const auto behind = unlock(leases[1]);  // behind it
  CHECK(behind.succeeded());
  link_up();
  CHECK(wire(server.open().front()).find("release") == 0);
  while (in_flight() > 0) reenters();
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
}

TEST_CASE_METHOD(nested, "a refusal is no silence, and each unlock hears why") {
  enter("a");
  enter("b");
  for (int i = 1; i >= 0; --i) {
    const auto unlocking = unlock(leases[static_cast<std::size_t>(i)]);
    fails(errc::auth_failed);
    CHECK(unlocking.failed_with(errc::auth_failed));
    advance(1s);
  }
}
