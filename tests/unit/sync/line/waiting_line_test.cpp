// SPDX-License-Identifier: BSL-1.0
#include "sync/line/waiting_line.hpp"

#include <time.h>

#include <boost/asio/error.hpp>

#include "support/seeded_random.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
namespace asio = boost::asio;

namespace {

constexpr auto backoff = 20ms;  // the first pause; without jitter every pause

}  // namespace

// ---- the way to a grant

TEST_CASE_METHOD(engine_fixture, "a free lock is granted by one command and no subscription") {
  const auto a = lock("a");
  CHECK(a.waits());
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  grants();
  CHECK(a.granted());
  CHECK(server.subscribe_calls(channel("a")) == 0);
  CHECK(server.count() == 1);
  CHECK(heard() == "acquired");
}

TEST_CASE_METHOD(engine_fixture, "a busy lock is subscribed to and tried again after the acknowledgement") {
  const auto a = lock("a");
  busy(10s);
  CHECK(a.waits());
  CHECK(subscribers("a") == 1);
  CHECK(server.count() == 1);
  acknowledges("a");
  CHECK(server.count() == 2);
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  grants();
  CHECK(a.granted());
  CHECK(subscribers("a") == 0);
}

TEST_CASE_METHOD(engine_fixture, "a parked waiter tries again at a message") {
  const auto a = lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  CHECK(server.count() == 2);
  publishes("a");
  CHECK(server.count() == 3);
  grants();
  CHECK(a.granted());
}

TEST_CASE_METHOD(engine_fixture, "messages during a try ask for exactly one more try") {
  lock("a");
  busy(10s);
  acknowledges("a");
  for (int i = 0; i < 5; ++i) publishes("a");
  CHECK(server.count() == 2);
  busy(10s);
  CHECK(server.count() == 3);
  busy(10s);
  CHECK(server.count() == 3);
}

TEST_CASE_METHOD(engine_fixture,
                 "a new acknowledgement after an outage of the pub/sub connection asks for one more try") {
  lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  link_down();
  link_up();
  CHECK(server.count() == 2);
  acknowledges("a");
  CHECK(server.count() == 3);
}

TEST_CASE_METHOD(engine_fixture, "a waiter parks for the holder's TTL and at most 2 ms more") {
  random.number = 1'000'000;  // 1 ms in nanoseconds: the most
  lock("a");
  busy(700ms);
  CHECK(timers.next_due() == clock.now() + 702ms);
  random.number = 0;
  advance(702ms);
  CHECK(server.count() == 2);
  busy(0ms);
  CHECK(timers.next_due() ==
        clock.now() + 1ms);  // not at once: Redis keeps the key through the millisecond in which it ends
}

TEST_CASE_METHOD(
    engine_fixture,
    "a pause counts from the question: a process that was stopped meanwhile does not wait for all of it again") {
  lock("a");
  SECTION("what is left of it") {
    clock.skip(1s);
    busy(3s);
    CHECK(timers.next_due() == clock.now() + 2001ms);
  }
  SECTION("it is over") {
    clock.skip(50s);
    busy(7s);
    CHECK(timers.next_due() == clock.now() + 1ms);
  }
  SECTION("the poll cap neither") {
    clock.skip(1s);
    busy(25s);
    CHECK(timers.next_due() == clock.now() - 1s + config{}.poll_cap);
  }
}

TEST_CASE("a waiter parks no longer than the poll cap, less up to a tenth, whatever its own TTL is") {
  config c;
  c.poll_cap = 5s;
  engine_fixture f(c);
  f.lock("a");
  f.busy(20s);
  CHECK(f.timers.next_due() == f.clock.now() + 5s);
  f.lock("b", with({.ttl = 10ms}));
  f.busy(20s);
  CHECK(f.timers.next_due() == f.clock.now() + 5s);
  f.random.number = 500'000'000;  // 10 % of 5 s
  f.lock("c");
  f.busy(20s);
  f.advance(4500ms - 1ns);
  CHECK(f.in_flight() == 0);
  f.advance(1ns);
  CHECK(f.last_sent() == "acquire(c; 30000, #3)");
}

TEST_CASE_METHOD(engine_fixture, "a waiter is granted the lock without any message") {
  play();
  server.auto_acknowledge = false;
  node.hold("a", "other:1", clock.now() + 12s);
  const auto a = lock("a");
  advance(12s);
  CHECK(a.waits());
  advance(2ms);
  CHECK(a.granted());
  CHECK(sent("acquire") == 4);  // at once, after 5 s, 10 s and 12 s
}

// ---- how a wait ends

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

// ---- the line

TEST_CASE_METHOD(engine_fixture,
                 "a thousand waiters are served in order with one subscription and one attempt in flight") {
  play();
  node.hold("a", "other:1", clock.now() + 1min);
  std::vector<lock_call> calls;
  for (int i = 0; i < 1000; ++i) calls.push_back(lock("a"));
  run();
  CHECK(server.subscribe_calls(channel("a")) == 1);
  CHECK(sent("acquire") == 2);
  node.clear();
  publishes("a");
  for (auto& c : calls) {
    REQUIRE(c.granted());
    const auto waiting = std::count_if(calls.begin(), calls.end(), [](const auto& other) { return other.waits(); });
    REQUIRE(waiting == &calls.back() - &c);
    CHECK(in_flight() <= 1);
    unlock(c);
    run();
  }
  CHECK(server.subscribe_calls(channel("a")) == 1);
  CHECK(sent("acquire") <= 2 + 2 * 1000);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a deadline while a hold of this client is being released is contention") {
  const auto a = hold("a");
  const auto b = try_lock_for("a", 100ms);
  advance(99ms);
  unlock(a);
  SECTION("not answered yet") { CHECK(last_sent().starts_with("release")); }
  SECTION("answered, and the first try is under way") {
    frees();
    CHECK(last_sent().starts_with("acquire"));
  }
  advance(1ms);
  CHECK(b.refused());
}

TEST_CASE_METHOD(engine_fixture, "a deadline of who became first of a parked line is contention") {
  const auto a = try_lock_for("a", 50ms);
  busy(10s);
  acknowledges("a");
  busy(10s);
  advance(1ms);
  const auto b = try_lock_for("a", 60ms);
  advance(50ms);
  CHECK(a.refused());
  advance(10ms);
  CHECK(b.refused());
}

TEST_CASE_METHOD(engine_fixture, "a deadline in a pause after a failure is that failure, also for who came in it") {
  link_down();
  const auto a = try_lock_for("a", 15ms);
  fails(errc::unreachable);
  advance(1ms);
  const auto b = try_lock_for("a", 15ms);
  advance(14ms);
  CHECK(a.failed_with(errc::unreachable));
  advance(1ms);
  CHECK(b.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(engine_fixture, "the next waiter parks while the lock is held here and tries when the hold ends") {
  const auto first = lock("a");
  const auto second = lock("a");
  CHECK(server.count() == 1);
  grants();
  CHECK(first.granted());
  CHECK(server.count() == 1);
  CHECK(subscribers("a") == 1);
  advance(100ms);
  CHECK(server.count() == 1);
  unlock(first);
  run();
  CHECK(last_sent().starts_with("release"));
  frees();
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(second.granted());
}

TEST_CASE_METHOD(engine_fixture, "a waiter behind a hold of this client does not ask Redis at the poll cap") {
  const auto held = hold("a");
  const auto second = lock("a");
  acknowledges("a");
  CHECK(sent("acquire") == 1);
  advance(5s);
  CHECK(sent("acquire") == 1);  // held here: nothing to ask
  CHECK(timers.next_due() <= clock.now() + 5s);
}

TEST_CASE_METHOD(engine_fixture, "a waiter tries as soon as the hold here is lost") {
  const auto held = hold("a", with({.ttl = 1s}));
  const auto second = lock("a");
  advance(988ms);
  CHECK(held.value()->of->ended());
  CHECK(last_sent() == "acquire(a; 30000, #2)");
}

TEST_CASE_METHOD(engine_fixture, "a waiter that leaves from the middle is passed over") {
  const auto held = hold("a");
  const auto second = lock("a");
  const auto third = lock("a");
  second.cancel();
  CHECK(second.failed_with(asio::error::operation_aborted));
  unlock(held);
  frees();
  grants();
  CHECK(third.granted());
}

namespace {

std::chrono::nanoseconds processor_time() {
  timespec t{};
  REQUIRE(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

/// Of one hand-over in a line of so many waiters, each with an owner of its own.
std::chrono::nanoseconds cost_of_hand_over(int waiters) {
  engine_fixture f;
  f.play();
  std::vector<lock_call> calls;
  for (int i = 0; i < waiters; ++i) calls.push_back(f.lock("a", by(owner())));
  f.run();
  constexpr int hand_overs = 40;
  const auto begin = processor_time();
  for (std::size_t i = 0; i < hand_overs; ++i) {
    f.unlock(calls.at(i));
    f.run();
  }
  const auto end = processor_time();
  REQUIRE(calls.at(hand_overs).granted());
  return (end - begin) / hand_overs;
}

}  // namespace

TEST_CASE("a hand-over costs the same however many wait with an owner of their own") {
  CHECK(cost_of_hand_over(50'000) < 20 * cost_of_hand_over(50));
}

TEST_CASE("at its grant an owner takes all its waiters out of the line in their order, and nobody else's") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    seeded_random draw(seed);
    engine_fixture f;
    const std::vector<owner> owners(3);
    struct caller {
      lock_call call;
      std::optional<owner> who;
    };
    std::vector<caller> line;
    for (int i = 0; i < 12; ++i) {
      const auto n = draw.next() % 4;
      const auto who = n < owners.size() ? std::optional(owners[n]) : std::nullopt;
      line.push_back({f.lock("a", {.who = who}), who});
    }
    for (auto each = line.begin() + 1; each != line.end();) {
      if (draw.next() % 4 == 0) {
        each->call.cancel();
        each = line.erase(each);
      } else {
        ++each;
      }
    }
    f.grants();
    REQUIRE(line.front().call.granted());
    const auto who = line.front().who;
    const auto is_mine = [&](const caller& c) { return who && c.who == who; };
    const auto mine = std::count_if(line.begin(), line.end(), is_mine);
    for (const auto& each : line) {
      if (!is_mine(each)) continue;
      if (each.call.waits()) f.reenters();  // the next in order
      CHECK(each.call.granted());
    }
    CHECK(f.sent("set_hold_count") == static_cast<std::size_t>(std::max<std::ptrdiff_t>(mine - 1, 0)));
    for (const auto& each : line) CHECK(each.call.waits() == (!is_mine(each) && &each != &line.front()));
  }
}

TEST_CASE_METHOD(engine_fixture, "an event says how many stood before and how long it took") {
  const auto first = lock("a");
  const auto second = lock("a");
  advance(100ms);
  grants();
  CHECK(last_event().waiters == 0);
  CHECK(last_event().waited == 100ms);
  unlock(first);
  frees();
  advance(100ms);
  grants();
  CHECK(second.granted());
  CHECK(last_event().what == kind::acquired);
  CHECK(last_event().waiters == 1);
  CHECK(last_event().waited == 200ms);
}

TEST_CASE_METHOD(engine_fixture, "two names do not wait for each other") {
  const auto a = lock("a");
  const auto b = lock("b");
  CHECK(in_flight() == 2);
  busy(10s);
  grants();
  CHECK(a.waits());
  CHECK(b.granted());
}

// ---- grants that come late, or twice

TEST_CASE_METHOD(engine_fixture, "the validity of a grant counts from before its command was queued") {
  const auto a = lock("a");
  const auto asked = clock.now();
  advance(400ms);
  grants();
  CHECK(a.value()->of->valid_until() == asked + 30s - 302ms);
}

TEST_CASE_METHOD(engine_fixture, "a grant after SCRIPT FLUSH counts from the send of the text") {
  const auto a = lock("a");
  const auto asked = clock.now();
  advance(100ms);
  errs("NOSCRIPT No matching script. Please use EVAL.");
  CHECK(server.last().argv[0] == "EVAL");
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  CHECK(server.last().timeout == 500ms);
  advance(100ms);
  grants();
  CHECK(a.value()->of->valid_until() == asked + 100ms + 30s - 302ms);
}

TEST_CASE_METHOD(engine_fixture, "NOSCRIPT to EVAL as well is no endless loop") {
  const auto a = try_lock("a");
  errs("NOSCRIPT No matching script.");
  errs("NOSCRIPT No matching script.");
  CHECK(a.failed_with(errc::server_refused));
  CHECK(server.count() == 2);
}

TEST_CASE_METHOD(engine_fixture,
                 "a grant with less than the least validity is given back and tried again under a new field") {
  const auto a = lock("a", with({.ttl = 1s}));  // valid for 988 ms, of which 50 ms are the least
  timers.on_step = nullptr;
  server.reply(0, replies::nil());
  clock.skip(938ms);
  run();
  CHECK(a.waits());
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  frees();
  CHECK(last_sent() == "acquire(a; 1000, #2)");
  grants();
  CHECK(a.granted());
}

TEST_CASE_METHOD(engine_fixture, "a grant with just the least validity is a grant") {
  const auto a = lock("a", with({.ttl = 1s}));
  timers.on_step = nullptr;
  server.reply(0, replies::nil());
  clock.skip(938ms - 1ns);
  run();
  CHECK(a.granted());
}

TEST_CASE_METHOD(engine_fixture, "try_lock answers unreachable when its grant comes too late") {
  const auto a = try_lock("a", with({.ttl = 1s}));
  timers.on_step = nullptr;
  server.reply(0, replies::nil());
  clock.skip(940ms);
  run();
  CHECK(a.failed_with(errc::unreachable));
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "an attempt without an answer is repeated under the same field") {
  const auto a = lock("a");
  fails(errc::unconfirmed);
  advance(backoff);
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  grants();
  CHECK(a.granted());
  unlock(a);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
}

TEST_CASE_METHOD(engine_fixture, "an attempt without an answer that is busy later is given back when the wait ends") {
  const auto a = lock("a");
  fails(errc::unconfirmed);
  advance(backoff);
  busy(10s);
  a.cancel();
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  not_yours();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture,
                 "an attempt without an answer is given back when its waiter is cancelled while it backs off") {
  const auto a = lock("a");
  fails(errc::unconfirmed);
  a.cancel();
  CHECK(a.failed_with(asio::error::operation_aborted));
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "an attempt that was never written needs nothing given back") {
  link_down();
  const auto a = lock("a");
  advance(500ms);
  a.cancel();
  CHECK(server.count() == 1);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "NOSCRIPT that arrives after the cancellation does not send the script") {
  const auto a = lock("a");
  a.cancel();
  CHECK(in_flight() == 2);
  errs("NOSCRIPT No matching script.");
  CHECK(sent("acquire") == 1);
  not_yours();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a grant that arrives after the cancellation is undone by the release behind it") {
  const auto a = lock("a");
  a.cancel();
  CHECK(a.failed_with(asio::error::operation_aborted));
  CHECK(wire(1) == "release(a; publish, redisson_lock__channel:{a}, #1)");
  grants();
  frees();
  CHECK(heard() == "acquire_cancelled released_late");
  check_nothing_is_left();
}

// ---- errors

TEST_CASE_METHOD(engine_fixture, "a lock without TTL is corrupt") {
  const auto a = lock("a");
  answers(replies::integer(-1));
  CHECK(a.failed_with(errc::corrupt_lock));
  CHECK(heard() == "acquire_failed");
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a key of another type is corrupt") {
  const auto a = lock("a");
  errs("WRONGTYPE Operation against a key holding the wrong kind of value");
  CHECK(a.failed_with(errc::corrupt_lock));
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a failure of one waiter leaves the next to try for itself") {
  const auto a = lock("a");
  const auto b = lock("a");
  answers(replies::integer(-1));
  CHECK(a.failed_with(errc::corrupt_lock));
  CHECK(b.waits());
  grants();
  CHECK(b.granted());
}

namespace {

struct failure_case {
  redis::reply reply;
  errc connection{};  // instead of a reply
  errc code;
  bool lock_waits;
};
const failure_case failures[] = {
    {replies::error("OOM command not allowed when used memory > 'maxmemory'."), {}, errc::server_refused, true},
    {replies::error("NOREPLICAS Not enough good replicas to write."), {}, errc::server_refused, true},
    {replies::error("MISCONF Redis is configured to save RDB snapshots"), {}, errc::server_refused, true},
    {replies::error("LOADING Redis is loading the dataset in memory"), {}, errc::server_refused, true},
    {replies::error("BUSY Redis is busy running a script."), {}, errc::server_refused, true},
    {replies::error("ERR anything else"), {}, errc::server_refused, true},
    {replies::error("READONLY You can't write against a read only replica."), {}, errc::not_primary, false},
    {replies::error("NOAUTH Authentication required."), {}, errc::auth_failed, false},
    {replies::error("NOPERM this user has no permissions"), {}, errc::no_permission, false},
    {replies::error("WRONGTYPE Operation against a key"), {}, errc::corrupt_lock, false},
    {{}, errc::unreachable, errc::unreachable, true},
    {{}, errc::unconfirmed, errc::unreachable, true},
    {{}, errc::server_refused, errc::server_refused, true},
    {{}, errc::auth_failed, errc::auth_failed, false},
    {{}, errc::no_permission, errc::no_permission, false},
    {{}, errc::not_primary, errc::not_primary, false},
    {{}, errc::tls_failed, errc::tls_failed, false},
    {{}, errc::protocol_error, errc::protocol_error, false},
    {{}, errc::overloaded, errc::overloaded, false},
    {{}, errc::closed, errc::closed, false},
};

void give(engine_fixture& f, const failure_case& c) {
  if (c.connection == errc{})
    f.answers(c.reply);
  else
    f.fails(c.connection);
}

}  // namespace

TEST_CASE("lock waits through what may mend itself and fails at once with the rest") {
  for (const auto& c : failures) {
    CAPTURE(c.reply.text, error_code(c.code).message());
    engine_fixture f;
    const auto a = f.lock("a");
    give(f, c);
    if (c.lock_waits) {
      CHECK(a.waits());
      f.advance(backoff);
      f.grants();
      CHECK(a.granted());
    } else {
      CHECK(a.failed_with(c.code));
      CHECK(f.timers.idle());
      CHECK(f.locks->idle());
    }
  }
}

TEST_CASE_METHOD(engine_fixture, "an answer of an unexpected form fails and what it may have granted is given back") {
  const auto a = lock("a");
  answers(replies::status("OK"));
  CHECK(a.failed_with(errc::protocol_error));
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  not_yours();
  check_nothing_is_left();
}

TEST_CASE("try_lock fails with every error at once") {
  for (const auto& c : failures) {
    CAPTURE(c.reply.text, error_code(c.code).message());
    engine_fixture f;
    const auto a = f.try_lock("a");
    give(f, c);
    if (c.connection == errc::unconfirmed) f.fails(errc::unconfirmed);  // it was sent once more
    CHECK(a.failed_with(c.code));
    if (c.connection == errc::unconfirmed) f.not_yours();
    f.check_nothing_is_left();
  }
}

TEST_CASE_METHOD(engine_fixture,
                 "a try_lock whose connection ends is sent once more under its field, in its own time") {
  const auto a = try_lock("a");
  advance(100ms);
  fails(errc::unconfirmed);
  CHECK(a.waits());
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  CHECK(unanswered().timeout == 400ms);
  SECTION("and granted") {
    grants();
    CHECK(a.granted());
    unlock(a);
    CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  }
  SECTION("and busy") {
    busy(10s);
    CHECK(a.refused());
    not_yours();
    check_nothing_is_left();
  }
  SECTION("and not a third time") {
    advance(100ms);
    fails(errc::unconfirmed);
    CHECK(a.failed_with(errc::unreachable));
    frees();
    check_nothing_is_left();
  }
}

TEST_CASE_METHOD(engine_fixture, "a try_lock whose time is over is not sent once more") {
  const auto a = try_lock("a");
  advance(500ms);
  CHECK(a.failed_with(errc::unreachable));
  CHECK(sent("acquire") == 1);
  frees();
  check_nothing_is_left();
}

TEST_CASE("try_lock_for waits for what may mend itself until its deadline") {
  for (const auto& c : failures) {
    CAPTURE(c.reply.text, error_code(c.code).message());
    engine_fixture f;
    const auto a = f.try_lock_for("a", 10ms);
    give(f, c);
    CHECK(a.waits() == c.lock_waits);
    f.advance(10ms);
    CHECK(a.failed_with(c.code));
    if (c.connection == errc::unconfirmed) f.not_yours();
    f.check_nothing_is_left();
  }
}

TEST_CASE_METHOD(engine_fixture,
                 "pauses between failed tries grow from 20 ms to a second and start anew after an answer") {
  random.number = ~0ULL;  // anything: only bounds are checked
  const auto a = lock("a");
  nanoseconds longest{};
  for (int i = 0; i < 40; ++i) {
    errs("LOADING Redis is loading the dataset in memory");
    REQUIRE(timers.next_due());
    const auto pause = *timers.next_due() - clock.now();
    CHECK(pause >= 20ms);
    CHECK(pause <= 1s);
    if (i == 0) CHECK(pause == 20ms);
    longest = std::max(longest, pause);
    random.number = random.number * 6364136223846793005 + 1442695040888963407;
    advance(pause);
  }
  CHECK(longest > 500ms);
  busy(10s);
  acknowledges("a");
  errs("LOADING Redis is loading the dataset in memory");
  CHECK(*timers.next_due() - clock.now() == 20ms);
}

TEST_CASE_METHOD(engine_fixture, "a refused subscription fails the waiter") {
  const auto a = lock("a");
  busy(10s);
  server.refuse(channel("a"), errc::no_permission, "NOPERM this user has no permissions to access one of the channels");
  run();
  CHECK(a.failed_with(errc::no_permission));
  CHECK(a.detail().starts_with("NOPERM"));
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "each waiter subscribes anew after a refusal") {
  const auto a = lock("a");
  const auto b = lock("a");
  busy(10s);
  server.refuse(channel("a"), errc::no_permission);
  run();
  CHECK(a.failed_with(errc::no_permission));
  busy(10s);
  CHECK(subscribers("a") == 1);
  acknowledges("a");
  grants();
  CHECK(b.granted());
}

// ---- cancellation, wherever it finds the waiter

TEST_CASE_METHOD(engine_fixture, "cancelled behind others a waiter leaves without a command") {
  const auto a = lock("a");
  const auto b = lock("a");
  b.cancel();
  CHECK(b.failed_with(asio::error::operation_aborted));
  CHECK(server.count() == 1);
  grants();
  CHECK(a.granted());
  unlock(a);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "cancelled during the first try a waiter hands the turn to the next") {
  const auto a = lock("a");
  const auto b = lock("a");
  a.cancel();
  REQUIRE(in_flight() == 2);
  CHECK(wire(1) == "release(a; publish, redisson_lock__channel:{a}, #1)");
  grants();
  CHECK(in_flight() == 1);
  frees();
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(b.granted());
}

TEST_CASE_METHOD(engine_fixture, "cancelled before the subscription is acknowledged a waiter leaves nothing") {
  const auto a = lock("a");
  busy(10s);
  a.cancel();
  CHECK(server.count() == 1);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "cancelled while parked a waiter leaves nothing") {
  const auto a = lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  a.cancel();
  CHECK(server.count() == 2);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "cancelled while parked the first waiter leaves the next parked in its place") {
  const auto a = lock("a");
  const auto b = lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  a.cancel();
  CHECK(server.count() == 2);
  CHECK(subscribers("a") == 1);
  publishes("a");
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(b.granted());
}

TEST_CASE_METHOD(engine_fixture, "cancelled while it backs off a waiter leaves nothing") {
  const auto a = lock("a");
  errs("LOADING Redis is loading the dataset in memory");
  a.cancel();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a second cancellation and one after the grant change nothing") {
  const auto a = lock("a");
  a.cancel();
  a.cancel();
  const auto b = lock("b");
  grants();
  not_yours();
  grants();
  CHECK(b.granted());
  b.cancel();
  CHECK(b.granted());
}

TEST_CASE("whenever it is cancelled a wait leaves no key and nothing else") {
  // The same scenario each time, cancelled one event later: busy, subscribed, unanswered, refused, granted.
  for (int steps = 0;; ++steps) {
    CAPTURE(steps);
    engine_fixture f;
    f.node.hold("a", "other:1", f.clock.now() + 3s);
    std::vector<std::size_t> unexecuted;
    bool acknowledged = false;
    f.server.on_command = [&](const fake_topology::command&) {
      unexecuted.push_back(f.server.count() - 1);
      return std::nullopt;
    };
    const auto a = f.lock("a");
    const auto serve_one = [&] {  // one thing happens; false when nothing is left to happen but the passing of time
      if (!unexecuted.empty()) {
        const auto n = unexecuted.front();
        unexecuted.erase(unexecuted.begin());
        auto reply = f.obey(f.server.sent(n));
        if (!f.server.sent(n).open) return;  // executed all the same
        if (n % 3 == 1)
          f.server.fail(n, errc::unconfirmed);  // executed, but the answer is lost
        else
          f.server.reply(n, std::move(reply));
        return f.run();
      }
      if (f.subscribers("a") == 1 && !std::exchange(acknowledged, true)) return f.acknowledges("a");
      f.timers.advance_to_next();
    };
    bool granted = false;
    for (int i = 0; i < steps && !granted; ++i) {
      serve_one();
      granted = a.granted();
    }
    if (granted) {
      f.unlock(a);
    } else {
      a.cancel();
      CHECK(a.failed_with(asio::error::operation_aborted));
    }
    for (int i = 0; i < 100 && !(f.timers.idle() && unexecuted.empty()); ++i) serve_one();
    CHECK(f.node.fields_of(f.uuid) == 0);
    CHECK(f.locks->idle());
    CHECK(f.timers.idle());
    CHECK(f.subscribers("a") == 0);
    if (granted) {
      CHECK(steps > 6);
      break;
    }
    REQUIRE(steps < 100);
  }
}

TEST_CASE_METHOD(engine_fixture, "a waiter tries at once when the hold before it turns out to be gone at its unlock") {
  const auto first = hold("a");
  const auto second = lock("a");
  CHECK(in_flight() == 0);
  const auto u = unlock(first);
  not_yours();
  CHECK(u.failed_with(errc::lost));
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(second.granted());
}

// ---- the limit on wake-ups

namespace {

/// Another client has "a" for a minute, and one of ours waits for it.
struct flooded : engine_fixture {
  lock_call waiting;

  flooded() {
    play();
    node.hold("a", "other:1", clock.now() + 1min);
    waiting = lock("a");
    run();
  }
  /// Messages for which nothing has happened, a hundred a millisecond.
  void flood(milliseconds time) {
    for (; time > 0ms; time -= 1ms) {
      for (int i = 0; i < 100; ++i) publishes("a");
      advance(1ms);
    }
  }
};

}  // namespace

TEST_CASE_METHOD(flooded, "a flooded channel costs twenty tries at once and then a hundred a second") {
  const auto at_first = sent("acquire");
  flood(1ms);
  CHECK(sent("acquire") - at_first <= 20);
  CHECK(sent("acquire") - at_first >= 19);  // the acknowledgement was a wake-up, too
  flood(1s);
  CHECK(sent("acquire") - at_first <= 20 + 100);
  CHECK(sent("acquire") - at_first >= 19 + 98);
}

TEST_CASE_METHOD(flooded, "a lock that is freed while its channel is flooded is tried within 10 ms") {
  flood(100ms);
  node.clear();
  publishes("a");
  CHECK(waiting.waits());
  advance(10ms);
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(flooded, "a flooded channel costs no more where each try fails") {
  server.on_command = nullptr;
  const auto at_first = sent("acquire");
  for (int i = 0; i < 1000; ++i) {
    publishes("a");
    while (in_flight() > 0) errs("OOM command not allowed when used memory > 'maxmemory'.");
  }
  CHECK(sent("acquire") - at_first == 19);
}

TEST_CASE_METHOD(flooded, "while the lock changes hands elsewhere every wake-up is followed at once") {
  for (int i = 0; i < 1000; ++i) {
    advance(1ms);
    node.hold("a", "other:" + std::to_string(i), clock.now() + 30s);
    const auto before = sent("acquire");
    publishes("a");
    REQUIRE(sent("acquire") == before + 1);
  }
}

TEST_CASE_METHOD(flooded, "a grant ends the thrift of those who wait behind it") {
  const auto next = lock("a");
  flood(10ms);
  node.clear();
  publishes("a");
  advance(10ms);
  REQUIRE(waiting.granted());
  server.on_command = nullptr;
  unlock(waiting);
  frees();
  CHECK(last_sent() == "acquire(a; 30000, #2)");
}
