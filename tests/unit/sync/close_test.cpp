// SPDX-License-Identifier: BSL-1.0
// Clients that close, are abandoned or destroyed.
#include "unit/sync/lease_end_listener.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE_METHOD(lease_end_listener, "close fails waiters and loses holds and releases them in one go") {
  const auto a = hold("a"), b = hold("b");
  const auto waiting = lock("a"), trying = lock("c"), tried = try_lock_for("a", 1min);
  watch(a);
  heard();
  const auto closing = close(10s);
  CHECK(waiting.failed_with(errc::shutting_down));
  CHECK(trying.failed_with(errc::shutting_down));
  CHECK(tried.failed_with(errc::shutting_down));
  CHECK(ends == std::vector<error_code>{errc::closed});
  CHECK(state(a) == lease_state::lost);
  CHECK(state(b) == lease_state::lost);
  CHECK(closing.waits());
  CHECK(sent("release") == 3);
  grants();  // c, all the same
  for (int i = 0; i < 3; ++i) frees();
  CHECK(closing.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "with nothing to release close ends at once") {
  CHECK(close().succeeded());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(
    engine_fixture,
    "after close every verb about a lease answers closed, every other shutting_down, and nothing is sent") {
  const auto a = hold("a"), b = hold("b");
  close();
  const auto before = server.count();
  CHECK(lock("c").failed_with(errc::shutting_down));
  CHECK(try_lock("c").failed_with(errc::shutting_down));
  CHECK(try_lock_for("c", 1s).failed_with(errc::shutting_down));
  CHECK(unlock(a).failed_with(errc::closed));
  CHECK(renew(b).failed_with(errc::closed));
  CHECK(force_unlock("a").failed_with(errc::shutting_down));
  drop(b);
  error_code reason;
  CHECK(locks->when_ended(a.value(), [&](error_code error) { reason = error; }) == nullptr);
  CHECK(reason == errc::not_held);  // it was unlocked
  int closed = 0;
  const auto ends = [&](const auto& answer) { closed += redis::error_of(answer.failed) == errc::shutting_down; };
  locks->ask().is_locked(keys("a"), ends);
  locks->hold_count(keys("a"), owner(), ends);
  locks->ask().remaining_ttl(keys("a"), ends);
  locks->ask().holder(keys("a"), ends);
  locks->probe(detail::plain_lock,
               [&](const auto& failed) { closed += redis::error_of(failed) == errc::shutting_down; });
  CHECK(closed == 5);
  CHECK(server.count() == before);
}

TEST_CASE_METHOD(engine_fixture, "close waits for releases that were under way") {
  const auto a = hold("a");
  const auto unlocking = unlock(a);
  const auto closing = close();
  CHECK(closing.waits());
  CHECK(unlocking.waits());
  frees();
  CHECK(unlocking.succeeded());
  CHECK(closing.succeeded());
}

TEST_CASE_METHOD(engine_fixture, "close waits no longer than the grace") {
  const auto a = hold("a"), b = hold("b");
  const auto unlocking = unlock(a);
  link_down();
  heard();
  const auto closing = close(200ms);
  advance(200ms - 1ns);
  CHECK(closing.waits());
  advance(1ns);
  CHECK(closing.succeeded());
  CHECK(unlocking.failed_with(errc::unconfirmed));
  CHECK(heard() == "closed release_failed release_given_up release_given_up");
  CHECK(locks->idle());
  advance(1s);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a second close waits with the first") {
  const auto a = hold("a");
  const auto first = close(10s), second = close(1min);
  advance(100ms);
  CHECK(first.waits());
  CHECK(second.waits());
  frees();
  CHECK(first.succeeded());
  CHECK(second.succeeded());
  CHECK(close().succeeded());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "of several graces the shortest ends the wait of all") {
  const auto a = hold("a");
  link_down();
  const auto first = close(10s), second = close(100ms);
  advance(100ms);
  CHECK(first.succeeded());
  CHECK(second.succeeded());
  advance(1s);
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "close answers in the end whoever still waits for Redis") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto partial = unlock(inner);
  const auto renewed = renew(outer);
  const auto forced = force_unlock("b");
  const auto last = unlock(outer);
  verb_call asked, probed;
  locks->ask().is_locked(keys("b"), [&](const auto& answer) { asked.answer(answer.failed, answer.value); });
  locks->probe(detail::plain_lock, [&](const auto& failed) { probed.answer(failed); });
  const auto closing = close(100ms);
  advance(100ms);
  CHECK(closing.succeeded());
  CHECK(partial.succeeded());
  CHECK(last.failed_with(errc::unconfirmed));
  CHECK(renewed.failed_with(errc::closed));
  CHECK(forced.failed_with(errc::shutting_down));
  CHECK(asked.failed_with(errc::shutting_down));
  CHECK(probed.failed_with(errc::shutting_down));
  advance(5s);  // late answers change nothing
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "a question that is answered within the grace gets its answer") {
  const auto a = hold("a");
  verb_call asked;
  locks->ask().is_locked(keys("b"), [&](const auto& answer) { asked.answer(answer.failed, answer.value); });
  close();
  answers(replies::integer(1));
  CHECK(asked.value());
  frees();
}

TEST_CASE_METHOD(engine_fixture, "between the flag and the close nothing is released in vain or not at all") {
  const owner alice;
  const auto a = hold("a", by(alice)), b = hold("b"), d = hold("d");
  const auto renewed = renew(b);
  const auto inner = lock("a", by(alice, {.ttl = 30s}));
  locks->state()->closed.store(true);  // what ~client does on any thread
  CHECK_FALSE(a.value()->of->exclusive());
  confirms();
  CHECK(renewed.failed_with(errc::closed));
  reenters();
  CHECK(inner.failed_with(errc::shutting_down));
  drop(d);
  const auto closing = close();
  CHECK(sent("release") == 3);
  for (int i = 0; i < 3; ++i) frees();
  CHECK(closing.succeeded());
  CHECK(std::count_if(events->all.begin(), events->all.end(),
                      [](const auto& event) { return event.what == kind::closed; }) == 3);
  CHECK(heard().find("lost") == std::string::npos);
}

TEST_CASE_METHOD(engine_fixture, "a lease that is given up between the flag and the close is renewed no more") {
  const auto a = hold("a");
  locks->state()->closed.store(true);
  drop(a);
  link_down();
  link_up();
  advance(0ms);  // the release is repeated
  CHECK(sent("renew") == 0);
  const auto closing = close();
  frees();
  CHECK(closing.succeeded());
}

TEST_CASE_METHOD(engine_fixture, "a lease outlives its engine and reads as lost") {
  const auto a = hold("a");
  const auto b = lock("b");
  locks.reset();
  CHECK_FALSE(a.value()->of->exclusive());
  CHECK(state(a) == lease_state::lost);
  b.cancel();
  CHECK(b.waits());
}

TEST_CASE("an engine that is destroyed at any time leaves no timer and touches nothing") {
  engine_fixture fixture;
  const auto held = fixture.hold("a");
  fixture.try_lock_for("a", 1min);
  fixture.lock("b");
  fixture.busy(10s);
  const auto released = fixture.hold("c");
  fixture.unlock(released);
  fixture.fails(errc::unconfirmed);
  fixture.lock("d");
  fixture.errs("LOADING");
  fixture.locks->probe(detail::plain_lock, [](const auto&) {});
  for (const auto command : fixture.server.open())
    fixture.server.fail(command, errc::overloaded);  // their own deadlines are timers too
  fixture.locks.reset();
  CHECK(fixture.timers.idle());
  CHECK(fixture.subscribers("a") + fixture.subscribers("b") == 0);
}
