// SPDX-License-Identifier: BSL-1.0
// client::drain(), as the engine does it.
#include <algorithm>

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct draining : engine_fixture {
  const owner alice, bob;

  verb_call drain(nanoseconds grace = 10s) {
    verb_call c;
    locks->drain(grace, [c] { c.answer({}); });
    run();
    return c;
  }
  void step() { advance(0ns); }  // what was due at once
  /// Everything that is under way is answered as a server would.
  void play_on() {
    while (in_flight() > 0) frees();
    step();
  }
};

}  // namespace

TEST_CASE_METHOD(draining, "a drain with nothing held is a shutdown") {
  const auto d = drain();
  CHECK(lock("a", by(alice)).failed_with(errc::shutting_down));
  step();
  CHECK(d.succeeded());
  CHECK(locks->closed());
  check_nothing_is_left();
}

TEST_CASE_METHOD(draining, "while a client drains only an owner that holds may lock, whichever way, and any name") {
  const auto a = hold("a", by(alice));
  const auto d = drain();
  for (const auto who : {std::optional(bob), std::optional<owner>()}) {
    CHECK(lock("b", {who}).failed_with(errc::shutting_down));
    CHECK(lock("a", {who}).failed_with(errc::shutting_down));
    CHECK(try_lock("b", {who}).failed_with(errc::shutting_down));
    CHECK(try_lock_for("b", 1s, {who}).failed_with(errc::shutting_down));
  }
  CHECK(server.count() == 1);
  const auto b = hold("b", by(alice));
  const auto again = lock("a", by(alice));
  reenters();
  const auto tried = try_lock("c", by(alice));
  grants();
  CHECK(tried.granted());
  for (const auto& l : {a, b, again, tried}) {
    CHECK(d.waits());
    CHECK(l.value()->state() == lease_state::held);
    const auto u = unlock(l);
    play_on();
    CHECK(u.succeeded());
  }
  CHECK(d.succeeded());
  CHECK(std::none_of(events->all.begin(), events->all.end(), [](const auto& e) { return e.what == kind::lost; }));
  check_nothing_is_left();
}

TEST_CASE_METHOD(draining, "a drain fails who waits and does not hold, and lets an owner that holds wait on") {
  const auto a = hold("a", by(alice)), b = hold("b", by(bob));
  const auto nobody = lock("a"), third = lock("a", by(owner())), tried = try_lock_for("a", 1h, by(owner()));
  const auto nested = lock("b", by(alice)), behind = lock("b"), crossing = lock("a", by(bob));
  acknowledges("a");
  acknowledges("b");
  const auto in_flight_one = lock("c");
  const auto d = drain();
  for (const auto& l : {nobody, third, tried, behind, in_flight_one}) CHECK(l.failed_with(errc::shutting_down));
  CHECK(nested.waits());
  CHECK(crossing.waits());
  grants();  // of c: too late
  CHECK(last_sent() == "release(c; publish, redisson_lock__channel:{c}, #3)");
  frees();
  crossing.cancel();
  unlock(b);
  frees();
  CHECK(last_sent().starts_with("acquire(b;"));
  grants();
  CHECK(nested.granted());
  CHECK(d.waits());
  unlock(nested);
  frees();
  unlock(a);
  frees();
  step();
  CHECK(d.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(draining, "an owner whose last lease ends waits no more, and may not lock again") {
  const auto a = hold("a", by(alice)), a2 = hold("a2", by(alice)), b = hold("b", by(bob));
  const auto early = lock("b", by(alice));
  const auto d = drain();
  const auto late = lock("b", by(alice)), others = lock("a", by(bob));
  unlock(a2);
  frees();
  CHECK(early.waits());
  CHECK(late.waits());
  SECTION("by an unlock") { unlock(a); }
  SECTION("by a drop") { drop(a); }
  SECTION("by a loss") {
    locks->force_unlock(keys("a"), [](auto&&...) {}), answers(replies::integer(1)), step(), confirms_nothing();
  }
  CHECK(early.failed_with(errc::shutting_down));
  CHECK(late.failed_with(errc::shutting_down));
  CHECK(others.waits());
  if (a.value()->state() == lease_state::lost) {
    CHECK(lock("a", by(alice)).failed_with(errc::lost));  // its leases are not gone
    drop(a);
  }
  CHECK(lock("a", by(alice)).failed_with(errc::shutting_down));
  others.cancel();
  CHECK(d.waits());
  unlock(b);
  play_on();
  CHECK(d.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(draining,
                 "a lease of a caller without owner is waited for, and re-entered by the owner that it names") {
  const auto a = hold("a");
  const auto d = drain();
  const auto again = lock("a", by(a.value()->of->owner)), other = lock("b", by(a.value()->of->owner));
  CHECK(sent("set_hold_count") == 1);
  CHECK(sent("acquire") == 2);
  reenters();
  grants();
  for (const auto& l : {again, a, other}) {
    unlock(l);
    CHECK(d.waits());
    play_on();
  }
  CHECK(d.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(draining, "a drain does not wait for a lost lease that its owner has not destroyed yet") {
  const auto lost = hold("a", by(alice));
  advance(10s);
  confirms_nothing();
  REQUIRE(lost.value()->state() == lease_state::lost);
  SECTION("beside nothing else") {}
  SECTION("beside one that is held") {
    const auto b = hold("b", by(bob));
    const auto d = drain();
    CHECK(lock("c", by(alice)).failed_with(errc::shutting_down));
    CHECK(d.waits());
    unlock(b);
    play_on();
    CHECK(d.succeeded());
  }
  const auto d = drain();
  step();
  CHECK(d.succeeded());
}

TEST_CASE_METHOD(draining, "leases are renewed while a client drains") {
  const auto a = hold("a", by(alice));
  drain(1min);
  advance(10s);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  confirms();
  CHECK(a.value()->state() == lease_state::held);
}

TEST_CASE_METHOD(draining,
                 "when the grace is over leases end, and their releases have a command timeout of their own") {
  const auto a = hold("a", by(alice));
  const auto waiting = lock("b", by(alice));
  const auto d = drain(100ms);
  advance(100ms - 1ns);
  CHECK(a.value()->state() == lease_state::held);
  CHECK(waiting.waits());
  advance(1ns);
  CHECK(a.value()->state() == lease_state::lost);
  CHECK(waiting.failed_with(errc::shutting_down));
  advance(499ms);
  CHECK(d.waits());
  SECTION("answered") { play_on(); }
  SECTION("not answered") {
    advance(1ms);
    CHECK(heard().find("release_given_up") != std::string::npos);
  }
  CHECK(d.succeeded());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(draining, "the unlock that ends a drain is answered, also when it waits for a count before it") {
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto d = drain();
  drop(inner);
  const auto u = unlock(outer);
  step();
  CHECK(u.waits());
  reenters();
  step();
  CHECK(d.waits());
  advance(100ms);
  frees();
  CHECK(u.succeeded());
  CHECK(d.succeeded());
  CHECK(heard() == "acquired reentered released");
  check_nothing_is_left();
}

TEST_CASE_METHOD(draining, "a second drain waits with the first, and the grace that ends first counts") {
  const auto a = hold("a", by(alice));
  const auto first = drain(10s), longer = drain(1min);
  CHECK(lock("b", by(alice)).waits());
  advance(5s);
  const auto shorter = drain(1s);
  advance(1s);
  CHECK(a.value()->state() == lease_state::lost);
  for (const auto& d : {first, longer, shorter}) CHECK(d.waits());
  play_on();
  for (const auto& d : {first, longer, shorter}) CHECK(d.succeeded());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(draining, "a close during a drain ends it, by its own grace") {
  const auto a = hold("a", by(alice));
  const auto d = drain(100ms);
  const auto c = close(10s);
  CHECK(a.value()->state() == lease_state::lost);
  advance(9s);
  CHECK(d.waits());
  SECTION("answered") { play_on(); }
  SECTION("not answered") { advance(1s); }
  SECTION("abandoned") { locks->abandon(); }
  CHECK(c.succeeded());
  CHECK(d.succeeded());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(draining, "a drain after a close waits with it, at most a command timeout") {
  const auto a = hold("a", by(alice));
  const auto c = close(1h);
  const auto d = drain(1h);
  advance(500ms);
  CHECK(c.succeeded());
  CHECK(d.succeeded());
  const auto later = drain(1h);
  CHECK(later.succeeded());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(draining, "an engine that is destroyed while it drains leaves no timer and answers nobody") {
  const auto a = hold("a", by(alice));
  const auto waiting = lock("b", by(alice));
  const auto d = drain();
  locks.reset();
  CHECK(d.waits());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(draining, "a re-entry whose hold is given back before its turn is closed, and told of") {
  const lock_options longer{.ttl = 30s};
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice, longer));
  const auto d = drain();
  unlock(outer);
  const auto again = lock("a", by(alice, longer));
  inner.cancel();
  heard();
  CHECK(again.waits());
  reenters();
  frees();
  CHECK(again.failed_with(errc::shutting_down));
  CHECK(heard() == "acquire_cancelled released");
  step();
  CHECK(d.succeeded());
}

TEST_CASE_METHOD(draining, "a drain answers hundreds of waiters and ends with the last of hundreds of holds") {
  play();
  const std::size_t all = 300;
  std::vector<lock_call> held, waiting;
  for (std::size_t i = 0; i < all; ++i) held.push_back(lock("m" + std::to_string(i), by(owner())));
  run();
  for (std::size_t i = 0; i < all; ++i) waiting.push_back(lock("m" + std::to_string(i)));
  const auto d = drain();
  for (const auto& w : waiting) CHECK(w.failed_with(errc::shutting_down));
  for (const auto& h : held) unlock(h);
  run();
  step();
  CHECK(d.succeeded());
  CHECK(node.empty());
}

TEST_CASE_METHOD(draining,
                 "a re-entry that goes to the line while its client drains fails with its owner's last hold") {
  const auto a = hold("a", by(alice)), b = hold("b", by(alice)), kept = hold("c", by(bob));
  const auto inner = lock("a", by(alice, {.ttl = 30s}));
  unlock(a);
  const auto next = lock("a", by(alice));
  drain();
  inner.cancel();
  reenters();
  frees();
  busy(10s);
  CHECK(next.waits());
  unlock(b);
  CHECK(next.failed_with(errc::shutting_down));
  CHECK(kept.value()->state() == lease_state::held);
}
