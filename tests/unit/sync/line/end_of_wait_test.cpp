// SPDX-License-Identifier: BSL-1.0
// The answer of a waiter whose time is over.
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr auto backoff = 20ms;  // the first pause; without jitter every pause

}  // namespace

TEST_CASE_METHOD(engine_fixture, "try_lock answers a busy lock with contention and subscribes to nothing") {
  const auto a = try_lock("a");
  busy(10s);
  CHECK(a.refused());
  CHECK(server.subscribe_calls(channel("a")) == 0);
  CHECK(heard() == "not_acquired");
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "try_lock fails at once while somebody waits here") {
  const auto first = lock("a");
  const auto second = try_lock("a");
  CHECK(second.refused());
  CHECK(server.count() == 1);
  CHECK(last_event().waiters == 1);
}

TEST_CASE_METHOD(engine_fixture, "try_lock asks Redis even though it is held here") {
  const auto held = hold("a");
  const auto tried = try_lock("a");
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  busy(30s);
  CHECK(tried.refused());
}

TEST_CASE_METHOD(engine_fixture, "a deadline ends the wait for a busy lock on time with contention") {
  const auto a = try_lock_for("a", 700ms);
  busy(10s);
  acknowledges("a");
  busy(10s);
  advance(700ms - 1ns);
  CHECK(a.waits());
  advance(1ns);
  CHECK(a.refused());
  CHECK(heard() == "not_acquired");
  CHECK(last_event().waited == 700ms);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a deadline without any answer from Redis is unreachable and says why") {
  link_down();
  server.why_silent.detail = "fake:6379: Connection refused";
  const auto wait = GENERATE(10ms, 700ms);
  const auto a = try_lock_for("a", wait);
  advance(wait);
  CHECK(a.failed_with(errc::unreachable));
  CHECK(a.detail() == "fake:6379: Connection refused");
  CHECK(heard() == "acquire_failed");
}

TEST_CASE_METHOD(engine_fixture, "a deadline while Redis refuses to write says so") {
  const auto a = try_lock_for("a", 50ms);
  errs("OOM command not allowed when used memory > 'maxmemory'.");
  advance(20ms);
  errs("OOM command not allowed when used memory > 'maxmemory'.");
  advance(30ms);
  CHECK(a.failed_with(errc::server_refused));
  CHECK(a.detail().starts_with("OOM"));
}

TEST_CASE("a deadline before any answer to the attempt is unreachable, and what may be granted is given back") {
  for (const auto* kind : {&detail::plain_lock, &detail::fenced_lock, &detail::simple_lock}) {
    engine_fixture f;
    const auto a = f.try_lock_for("a", 100ms, {{}, {}, kind});
    f.advance(100ms);
    CHECK(a.failed_with(errc::unreachable));
    CHECK(a.detail() == "fake:6379: no answer in time");
    CHECK(f.heard() == "acquire_failed");
    CHECK(f.last_event().reason == errc::unreachable);
    CHECK(f.in_flight() == 2);
    f.grants();
    f.frees();
    f.check_nothing_is_left();
  }
}

TEST_CASE_METHOD(engine_fixture,
                 "a deadline during the first try is contention where Redis has answered others since") {
  const auto a = try_lock_for("a", 100ms);
  const auto b = lock("b");
  advance(99ms);
  server.reply(1, replies::nil());
  run();
  CHECK(b.granted());
  advance(1ms);
  CHECK(a.refused());
  CHECK(heard() == "acquired not_acquired");
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  grants();
  frees();
  unlock(b);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "what Redis has answered before the attempt was written is no answer to it") {
  SECTION("the greeting of its connection") {
    link_down();
    const auto a = try_lock_for("a", 100ms);
    advance(50ms);
    link_up();
    advance(50ms);
    CHECK(a.failed_with(errc::unreachable));
  }
  SECTION("the answer to what was written before it") {
    const auto b = lock("b");
    server.block();
    const auto a = try_lock_for("a", 100ms);
    advance(50ms);
    server.reply(0, replies::nil());
    server.unblock();
    advance(50ms);
    CHECK(a.failed_with(errc::unreachable));
  }
  SECTION("the word that it does not know the script") {
    const auto a = try_lock_for("a", 100ms);
    advance(50ms);
    errs("NOSCRIPT No matching script. Please use EVAL.");
    advance(50ms);
    CHECK(a.failed_with(errc::unreachable));
  }
}

TEST_CASE_METHOD(engine_fixture,
                 "a deadline of an attempt that waits to be written is contention while others are answered") {
  const auto b = lock("b");
  server.block();
  const auto a = try_lock_for("a", 100ms);
  advance(50ms);
  server.reply(0, replies::nil());
  advance(50ms);
  CHECK(a.refused());
}

TEST_CASE_METHOD(engine_fixture, "a deadline behind a waiter is contention where Redis has answered others meanwhile") {
  const auto first = lock("a"), other = lock("b");
  advance(1ms);
  const auto second = try_lock_for("a", 100ms);
  advance(50ms);
  SECTION("it has") {
    server.reply(1, replies::nil());
    advance(50ms);
    CHECK(second.refused());
  }
  SECTION("it has not, however often it was answered before") {
    advance(50ms);
    CHECK(second.failed_with(errc::unreachable));
  }
}

TEST_CASE_METHOD(engine_fixture, "a deadline behind an unanswered release of this client is unreachable") {
  const auto first = lock("a");
  first.cancel();
  const auto second = try_lock_for("a", 100ms);
  advance(100ms);
  CHECK(second.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(engine_fixture, "a deadline behind a waiter that is parked at a busy lock is contention") {
  const auto first = lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  advance(1s);
  const auto second = try_lock_for("a", 2s);
  advance(2s);
  CHECK(server.count() == 2);
  CHECK(second.refused());
}

TEST_CASE_METHOD(engine_fixture, "a deadline behind a waiter that gets no answer is unreachable") {
  const auto first = lock("a");
  busy(10s);
  acknowledges("a");
  fails(errc::unconfirmed);
  link_down();
  advance(1ms);
  const auto second = try_lock_for("a", 2s);
  advance(2s);
  CHECK(second.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(engine_fixture, "a deadline behind a waiter that Redis has never answered is unreachable") {
  const auto first = lock("a");
  const auto second = try_lock_for("a", 500ms);
  advance(500ms);
  CHECK(second.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(engine_fixture,
                 "a deadline without a connection is unreachable, and what was never written needs no release") {
  link_down();
  const auto a = try_lock_for("a", 100ms);
  const auto b = try_lock_for("b", 600ms);
  const auto c = lock("c");
  c.cancel();
  advance(100ms);
  CHECK(a.failed_with(errc::unreachable));
  advance(500ms);
  CHECK(b.failed_with(errc::unreachable));
  link_up();
  advance(1s);
  CHECK(in_flight() == 0);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a grant that comes late is used while it is valid, from the send of its own copy") {
  const auto a = lock("a");
  const auto asked = clock.now();
  advance(3s);
  CHECK(a.waits());
  CHECK(server.count() == 1);
  grants();
  CHECK(a.granted());
  CHECK(a.value()->of->valid_until() == asked + 30s - 302ms);
}

TEST_CASE_METHOD(engine_fixture, "validity counts from the write and not from the queue") {
  link_down();
  const auto a = lock("a");
  advance(1h);
  CHECK(a.waits());
  link_up();
  const auto written = clock.now();
  advance(10ms);
  grants();
  CHECK(a.granted());
  CHECK(a.value()->of->valid_until() == written + 30s - 302ms);
}

TEST_CASE_METHOD(engine_fixture, "after two unanswered copies a waiter gives its field back and lets others go first") {
  const auto a = lock("a");
  fails(errc::unconfirmed);
  advance(backoff);
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  fails(errc::unconfirmed);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  advance(10s);  // a connection that is being made: the pause begins when Redis may have had the release
  CHECK(in_flight() == 1);
  const bool lost = GENERATE(false, true);
  if (lost) {
    fails(errc::unconfirmed);
    advance(0ms);
  }
  frees();
  nanoseconds pause{};
  for (int round = 0; round < 8; ++round) {
    const auto before = server.count();
    const auto paused = clock.now();
    while (server.count() == before) REQUIRE(timers.advance_to_next());
    CHECK(clock.now() - paused >= pause);
    pause = std::min<nanoseconds>(clock.now() - paused, 1s);
    CHECK(wire(before).starts_with("acquire(a; 30000, #"));
    fails(errc::unconfirmed);
    while (in_flight() == 0) REQUIRE(timers.advance_to_next());
    fails(errc::unconfirmed);
    frees();
  }
  CHECK(pause == 1s);
  SECTION("and it leaves") {
    a.cancel();
    check_nothing_is_left();
    const auto b = try_lock("a");
    run();
    CHECK(in_flight() == 1);
    grants();
    CHECK(b.granted());
  }
  SECTION("and another takes its place, who pauses as well") {
    const auto b = lock("a");
    a.cancel();
    const auto before = server.count();
    advance(999ms);
    CHECK(server.count() == before);
    advance(1ms);
    CHECK(in_flight() == 1);
    grants();
    CHECK(b.granted());
  }
  SECTION("and an answer ends the pauses") {
    advance(1s);
    errs("LOADING Redis is loading the dataset in memory");
    while (in_flight() == 0) REQUIRE(timers.advance_to_next());
    fails(errc::unconfirmed);
    while (in_flight() == 0) REQUIRE(timers.advance_to_next());
    fails(errc::unconfirmed);
    frees();
    advance(20ms);
    CHECK(in_flight() == 1);
  }
}

TEST_CASE_METHOD(engine_fixture, "an acquire is not written together with the release of an earlier attempt") {
  enum class end { cancelled, unanswered, late };
  const auto ended = GENERATE(end::cancelled, end::unanswered, end::late);
  const auto first = ended == end::cancelled    ? lock("a")
                     : ended == end::unanswered ? try_lock("a")
                                                : try_lock_for("a", 100ms);
  run();
  if (ended == end::unanswered) {
    fails(errc::unconfirmed);
    fails(errc::unconfirmed);
  } else {
    if (ended == end::cancelled) first.cancel();
    advance(100ms);
    grants();
  }
  CHECK_FALSE(first.waits());
  const auto second = lock("a");
  run();
  CHECK(in_flight() == 1);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  SECTION("and waits for the answer") { frees(); }
  SECTION("and waits until its connection has ended") { fails(errc::unconfirmed); }
  SECTION("and waits for a release that is written later") {
    fails(errc::unreachable);
    while (in_flight() == 0) REQUIRE(timers.advance_to_next());
    CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
    frees();
  }
  CHECK(sent("acquire") == (ended == end::unanswered ? 3 : 2));
  grants();
  CHECK(second.granted());
}

TEST_CASE_METHOD(engine_fixture, "a line that waits only for the release of its last waiter is not subscribed") {
  const auto a = lock("a");
  busy(10s);
  acknowledges("a");
  run();
  a.cancel();
  CHECK(subscribers("a") == 0);
  busy(10s);
  not_yours();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "try_lock() waits for the release of an earlier attempt, half of its time at most") {
  const auto first = lock("a");
  run();
  first.cancel();
  grants();
  const auto second = try_lock("a");
  CHECK(try_lock("a").refused());
  advance(249ms);
  CHECK(second.waits());
  SECTION("then it asks, and has the rest of its time for the answer") {
    frees();
    CHECK(last_sent() == "acquire(a; 30000, #2)");
    CHECK(unanswered().timeout == 251ms);
    grants();
    CHECK(second.granted());
  }
  SECTION("then it asks all the same") {
    advance(1ms);
    CHECK(last_sent() == "acquire(a; 30000, #2)");
    SECTION("and may hear that the release has come too late") {
      frees();
      busy(10s);
      CHECK(second.refused());
    }
    SECTION("and may find no answer either") {
      fails(errc::unconfirmed);  // the release
      fails(errc::unconfirmed);
      fails(errc::unconfirmed);  // the second copy
      CHECK(second.failed_with(errc::unreachable));
      advance(0ms);
      frees();
      frees();
    }
    check_nothing_is_left();
  }
}

TEST_CASE_METHOD(
    engine_fixture,
    "a refusal is told by the waiter if it is the server's answer, and not if the connection has told it") {
  const auto a = lock("a"), b = lock("b");
  fails(errc::server_refused);
  CHECK(heard().empty());
  errs("OOM command not allowed when used memory > 'maxmemory'.");
  CHECK(heard() == "outage");
  CHECK(a.waits());
  CHECK(b.waits());
}

TEST_CASE_METHOD(engine_fixture, "a deadline behind a hold of this client is contention also during an outage") {
  const auto held = hold("a");
  link_down();
  const auto second = try_lock_for("a", 2s);
  advance(2s);
  CHECK(second.refused());
}

TEST_CASE_METHOD(engine_fixture, "a failure that was answered since does not explain a later deadline") {
  const auto first = lock("a");
  errs("LOADING Redis is loading the dataset in memory");
  advance(20ms);
  busy(10s);
  acknowledges("a");
  busy(10s);
  advance(1ms);
  const auto second = try_lock_for("a", 1s);
  advance(1s);
  CHECK(second.refused());
}

TEST_CASE_METHOD(engine_fixture, "a deadline is unreachable where the lock's own node is, whatever others answer") {
  lives_on(1, "b");
  link_down(1);
  const auto a = try_lock_for("a", 1s), b = try_lock_for("b", 1s);
  busy(10s);
  acknowledges("a");
  server.reply_last(replies::integer(10'000));
  advance(1s);
  CHECK(a.refused());
  CHECK(b.failed_with(errc::unreachable));
}
