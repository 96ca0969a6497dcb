// SPDX-License-Identifier: BSL-1.0
#include "sync/renewal/watchdog.hpp"

#include <atomic>
#include <string>
#include <thread>

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr auto drift = 302ms;  // of 30 s
nanoseconds left(const lock_call& c) { return c.value()->of->left(); }
bool planned(const lock_call& c) { return c.value()->of->on->sole_share().stage != detail::renewal_stage::none; }

}  // namespace

// ---- when

TEST_CASE_METHOD(engine_fixture, "a hold is renewed every third of its TTL") {
  const auto a = hold("a");
  advance(10s - 1ns);
  CHECK(sent("renew") == 0);
  for (int i = 1; i <= 10; ++i) {
    advance(i == 1 ? 1ns : nanoseconds(10s));
    CHECK(sent("renew") == static_cast<std::size_t>(i));
    CHECK(last_sent() == "renew(a; 30000, #1)");
    confirms();
    CHECK(left(a) == 30s - drift);
  }
  CHECK(heard() == "acquired");
}

TEST_CASE_METHOD(engine_fixture, "renewals come with up to 5 % jitter, always earlier") {
  random.number = 500'000'000;
  const auto a = hold("a");
  CHECK(*timers.next_due() == clock.now() + 9500ms);
}

TEST_CASE_METHOD(engine_fixture, "the next renewal counts from the send of the last and so does the validity") {
  const auto a = hold("a");
  advance(10s);
  advance(300ms);
  confirms();
  CHECK(left(a) == 30s - drift - 300ms);
  CHECK(*timers.next_due() == clock.now() + 10s - 300ms);
}

TEST_CASE_METHOD(engine_fixture, "a lease with a TTL of its own is not renewed") {
  const auto a = hold("a", with({.ttl = 3s}));
  advance(2967ms);
  CHECK(sent("renew") == 0);
  CHECK(state(a) == lease_state::held);
  advance(1ms);
  CHECK(state(a) == lease_state::lost);
}

TEST_CASE_METHOD(engine_fixture, "a TTL of its own is renewed where that is asked for") {
  const auto a = hold("a", with({.ttl = 3s, .renew = true}));
  advance(1s);
  CHECK(last_sent() == "renew(a; 3000, #1)");
  confirms();
  CHECK(left(a) == 3s - 32ms);
}

TEST_CASE_METHOD(engine_fixture, "nothing is renewed after unlock began") {
  const auto a = hold("a");
  advance(10s - 1ns);
  unlock(a);
  CHECK(server.count() == 2);
  advance(400ms);
  CHECK(server.count() == 2);
  frees();
  advance(1min);
  CHECK(sent("renew") == 0);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a renewal that is answered after unlock began changes nothing") {
  const auto a = hold("a");
  advance(10s);
  const auto u = unlock(a);
  confirms_nothing();
  CHECK(u.waits());
  frees();
  CHECK(u.succeeded());
  CHECK(heard() == "acquired released");
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a renewal that fails after unlock began is not repeated and not told") {
  const auto a = hold("a");
  advance(10s);
  unlock(a);
  heard();
  fails(errc::unconfirmed);
  CHECK(heard().empty());
  frees();
  advance(1min);
  CHECK(sent("renew") == 1);
  check_nothing_is_left();
}

namespace {

/// A client that holds so many locks that their renewals are spread.
struct crowd : engine_fixture {
  crowd() {
    play();
    for (int i = 0; i <= 1000; ++i) lock("n" + std::to_string(i));
    advance(0ns);
  }
};

}  // namespace

TEST_CASE_METHOD(crowd, "where there are many, a hold is renewed for the first time at any time of its period") {
  random.number = 7'500'000'000;
  lock("a");
  advance(2500ms - 1ns);
  CHECK(sent("renew") == 0);
  random.number = 0;
  advance(1ns);
  CHECK(last_sent() == "renew(a; 30000, #1002)");
  SECTION("then in its rhythm") {
    advance(7500ms);
    const auto all = sent("renew");
    advance(2500ms - 1ns);
    CHECK(sent("renew") == all);
    advance(1ns);
    CHECK(sent("renew") == all + 1);
  }
  SECTION("after an outage anew") {
    random.number = 7'500'000'000;
    link_down();
    link_up();
    advance(0ns);
    const auto all = sent("renew");
    advance(2500ms - 1ns);
    CHECK(sent("renew") == all);
    advance(1ns);
    CHECK(sent("renew") > all);
  }
}

// ---- what does not work

TEST_CASE_METHOD(engine_fixture, "a renewal that fails near the end is repeated before the end") {
  const auto a = hold("a");
  advance(10s);
  fails(errc::unconfirmed);
  clock.skip(30s - drift - 10s - 100ms);
  timers.run_due();
  fails(errc::unreachable);
  advance(50ms);
  confirms();
  CHECK(left(a) == 30s - drift);
}

TEST_CASE_METHOD(engine_fixture, "a hold whose last unlock is queued is renewed no more, whoever doubts it") {
  const owner alice;
  const auto outer = hold("a", by(alice));
  const auto inner = lock("a", by(alice, {.ttl = 30s}));  // in flight: the unlock waits for it
  inner.cancel();
  unlock(outer);
  force_unlock("a");
  server.reply(server.open().at(1), replies::integer(1));
  advance(0ms);
  CHECK(sent("renew") == 0);
  reenters();
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
}

TEST_CASE_METHOD(engine_fixture, "a failed renewal suspends and is repeated until it is confirmed") {
  const auto a = hold("a");
  advance(10s);
  heard();
  fails(errc::unconfirmed);
  CHECK(heard() == "renewal_failed suspended");
  CHECK(last_event().reason == errc::unconfirmed);
  CHECK(state(a) == lease_state::suspended);
  CHECK(a.value()->of->exclusive());
  CHECK(left(a) == 20s - drift);
  CHECK(*timers.next_due() == clock.now() + 500ms);
  advance(500ms);
  CHECK(sent("renew") == 2);
  fails(errc::unconfirmed);
  CHECK(heard() == "renewal_failed");
  advance(500ms);
  confirms();
  CHECK(heard() == "restored");
  CHECK(state(a) == lease_state::held);
  CHECK(left(a) == 30s - drift);
  CHECK(*timers.next_due() == clock.now() + 10s);
}

TEST_CASE_METHOD(engine_fixture, "pauses after failed renewals are up to a fifth shorter") {
  const auto a = hold("a");
  advance(10s);
  random.number = 100'000'000;
  fails(errc::unconfirmed);
  CHECK(*timers.next_due() == clock.now() + 400ms);
}

TEST_CASE_METHOD(engine_fixture, "without any answer a hold is lost at the end of its validity by the clock alone") {
  const auto a = hold("a");
  link_down();
  advance(30s - drift - 1ns);
  CHECK(state(a) == lease_state::suspended);
  heard();
  advance(1ns);
  CHECK(state(a) == lease_state::lost);
  CHECK(a.value()->of->ended());
  CHECK(heard() == "lost");
  CHECK(last_event().reason == errc::lost);
  CHECK(last_event().held == 30s - drift);
}

TEST_CASE_METHOD(engine_fixture, "with T = 30 s a renewal is tried ten times or more before the hold is lost") {
  random.number = 0;
  const auto a = hold("a");
  while (state(a) != lease_state::lost) {
    if (in_flight() > 0) fails(errc::unconfirmed);
    REQUIRE(timers.advance_to_next());
  }
  CHECK(sent("renew") >= 10);
}

TEST_CASE_METHOD(engine_fixture, "a confirmation after the validity is over does not resurrect") {
  const bool somebody_has_looked = GENERATE(true, false);
  const auto a = hold("a");
  advance(10s);
  timers.on_step = nullptr;
  server.reply_last(replies::integers({1}));
  clock.skip(20s);  // what was confirmed would last another 10 s
  if (somebody_has_looked) CHECK_FALSE(a.value()->of->exclusive());
  run();
  CHECK(state(a) == lease_state::lost);
  timers.run_due();
  CHECK(heard() == "acquired lost");
  CHECK(a.value()->of->valid_until() < clock.now());
}

TEST_CASE_METHOD(engine_fixture, "an executor that stood still finds the hold lost and does not renew it") {
  const auto a = hold("a");
  clock.skip(31s);
  CHECK(state(a) == lease_state::lost);
  timers.run_due();
  run();
  CHECK(a.value()->of->ended());
  CHECK(heard() == "acquired lost");
  CHECK(left(a) == 0s);
}

TEST_CASE_METHOD(engine_fixture, "the answer 0 means lost at once") {
  const auto a = hold("a");
  advance(10s);
  confirms_nothing();
  CHECK(state(a) == lease_state::lost);
  CHECK(heard() == "acquired lost");
  CHECK(server.count() == 2);  // nothing to release
  drop(a);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a key with other fields is lost at once, and its own field is given back") {
  const bool by_caller = GENERATE(false, true);
  const auto a = hold("a");
  std::optional<verb_call> asked;
  if (by_caller)
    asked = renew(a);
  else
    advance(10s);
  answers(replies::integers({-1}));
  CHECK(state(a) == lease_state::lost);
  if (asked) CHECK(asked->failed_with(errc::lost));
  CHECK(heard() == "acquired lost");
  CHECK(last_event().reason == errc::lost);
  CHECK(last_event().cause == loss_cause::corrupt);
  CHECK(last_event().detail.find("other fields") != std::string::npos);
  CHECK(unanswered().argv.front() == "EVALSHA");
  frees();
  CHECK(server.count() == 3);
  drop(a);
  check_nothing_is_left();
}

// ---- which leases

TEST_CASE_METHOD(engine_fixture, "a hold is renewed with the largest TTL of its leases while one asks for it") {
  const owner alice;
  const auto outer = hold("a", by(alice, {.ttl = 60s}));
  const auto inner = lock("a", by(alice));
  reenters();
  advance(20s);
  CHECK(last_sent() == "renew(a; 60000, #1)");
  confirms();
  unlock(inner);
  reenters();
  advance(59s);
  CHECK(state(outer) == lease_state::held);
  advance(1s);
  CHECK(state(outer) == lease_state::lost);
  CHECK(sent("renew") == 1);
}

TEST_CASE_METHOD(engine_fixture, "the count of a re-entry renews the hold, also where its TTL is shorter") {
  const owner alice;
  play();
  const auto outer = lock("a", by(alice));
  run();
  for (int i = 0; i < 20; ++i) {
    advance(5s);
    const auto inner = lock("a", by(alice, {.ttl = 1s}));
    run();
    REQUIRE(inner.granted());
    unlock(inner);
    run();
  }
  CHECK(state(outer) == lease_state::held);
  CHECK(sent("renew") == 0);
}

TEST_CASE_METHOD(engine_fixture, "a renewed re-entry into a lease that is not renewed is renewed in time") {
  const owner alice;
  const auto outer = hold("a", by(alice, {.ttl = 10s}));
  advance(9s);
  const auto inner = lock("a", by(alice, {.ttl = 500ms, .renew = true}));
  reenters();
  advance(0ms);
  CHECK(last_sent() == "renew(a; 10000, #1)");
  confirms();
  CHECK(left(outer) == 10s - 102ms);
}

TEST_CASE_METHOD(engine_fixture, "max_hold ends renewal and the hold ends with its TTL") {
  const auto a = hold("a", with({.max_hold = 15s}));
  advance(10s);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  confirms();
  advance(10s);
  CHECK(last_sent() == "renew(a; 19895, #1, 20000)");
  confirms();
  CHECK(state(a) == lease_state::held);
  advance(20s - drift - 1ns);
  CHECK(state(a) == lease_state::held);
  CHECK(sent("renew") == 2);
  advance(1ns);
  CHECK(state(a) == lease_state::lost);
}

TEST_CASE_METHOD(engine_fixture, "a renewal that waited to be written claims no more than max_hold and a TTL") {
  const auto a = hold("a", with({.max_hold = 11s}));
  server.block();
  advance(12s);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  server.unblock();
  confirms();
  CHECK(left(a) == 29s - drift);
  feed(a);
  advance(0ms);
  confirms();
  CHECK(left(a) == 30s - drift);
}

TEST_CASE_METHOD(engine_fixture, "a fed lease is renewed on") {
  const auto a = hold("a", with({.max_hold = 15s}));
  for (int i = 0; i < 10; ++i) {
    advance(10s);
    CHECK(last_sent() == "renew(a; 30000, #1)");
    confirms();
    feed(a);
  }
  CHECK(left(a) == 30s - drift);
}

TEST_CASE_METHOD(engine_fixture, "a lease that is fed after max_hold is renewed at once") {
  const auto a = hold("a", with({.max_hold = 5s}));
  advance(10s);
  confirms();
  CHECK(a.value()->of->renewal_paused());
  advance(10s);
  CHECK(sent("renew") == 1);
  feed(a);
  CHECK_FALSE(a.value()->of->renewal_paused());
  advance(0ms);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  confirms();
  CHECK(left(a) == 30s - drift);
}

TEST_CASE_METHOD(engine_fixture, "a lease that is fed while a mere confirmation is in flight is renewed in time") {
  const auto a = hold("a", with({.max_hold = 5s}));
  advance(10s);
  confirms();  // without raising the TTL: 20 s are left
  advance(19s);
  link_down();
  link_up();
  advance(0ms);
  CHECK(last_sent() == "renew(a; 705, #1, 895)");
  feed(a);
  confirms();
  advance(0ms);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  confirms();
  CHECK(left(a) == 30s - drift);
}

TEST_CASE_METHOD(engine_fixture, "a lease that is fed and released at once leaves the others of its hold to be fed") {
  const owner alice;
  const auto outer = hold("a", by(alice, {.max_hold = 5s})), inner = lock("a", by(alice, {.max_hold = 5s}));
  reenters();
  advance(10s);
  confirms();
  REQUIRE(inner.value()->feed());
  REQUIRE(inner.value()->try_release());  // by its destructor, before the client's strand hears of either
  locks->fed(inner.value());
  locks->drop(inner.value());
  reenters();
  feed(outer);
  advance(0ms);
  confirms();
  CHECK(left(outer) == 30s - drift);
}

TEST_CASE("a lease that another thread feeds in the moment of the pause is renewed") {
  constexpr int rounds = 10'000;
  std::atomic<int> round{0}, done{0};
  std::atomic<detail::lease_record*> record{nullptr};
  int delay = 0;  // of the feed; it homes in on the pause
  bool saw_the_pause = false;
  std::thread feeder([&] {
    for (int i = 1; i <= rounds; ++i) {
      for (int spin = 0; round != i; ++spin)
        if (spin > 10'000) std::this_thread::yield();
      for (int spin = 0; spin < delay + i % 64; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      saw_the_pause = record.load()->feed();
      done = i;
    }
  });
  int missed = 0;
  for (int i = 1; i <= rounds; ++i) {
    engine_fixture f;
    const auto a = f.hold("a", with({.max_hold = 5s}));
    f.advance(10s);
    record = a.value().get();
    round = i;
    f.confirms();
    while (done != i) std::this_thread::yield();
    delay = std::max(0, saw_the_pause ? delay - 16 : delay + 16);
    if (saw_the_pause) f.locks->fed(a.value());
    missed += !planned(a);
  }
  feeder.join();
  CHECK(missed == 0);
}

TEST_CASE_METHOD(engine_fixture,
                 "what is sent while another is in flight covers what that will confirm, where a TTL was taken away") {
  const owner alice;
  const auto outer = hold("a", by(alice, {.ttl = 300ms, .renew = true}));
  advance(100ms);
  CHECK(last_sent() == "renew(a; 300, #1)");
  renew(outer, 10ms);
  CHECK(last_sent() == "renew(a; 197, #1, 300)");
  confirms();
  confirms();
  renew(outer, 30s);
  lock("a", by(alice, {.ttl = 300ms}));
  CHECK(last_sent() == "set_hold_count(a; 300, #1, 2, 30000)");
}

TEST_CASE_METHOD(engine_fixture, "a confirmation never raises the TTL, whatever a re-entry is asking for") {
  const owner alice;
  const auto outer = hold("a", by(alice, {.ttl = 300ms}));
  const auto inner = lock("a", by(alice, {.ttl = 30s}));
  const auto valid = outer.value()->of->valid_until();
  link_down();
  link_up();
  advance(0ms);
  CHECK(last_sent() == "renew(a; 298, #1, 30000)");
  while (in_flight() > 1) fails(errc::unreachable);
  confirms();
  CHECK(outer.value()->of->valid_until() <= valid + 2ms);
}

TEST_CASE_METHOD(engine_fixture, "one fed lease keeps the others of its hold") {
  const owner alice;
  const auto fed = hold("a", by(alice, {.max_hold = 5s}));
  const auto other = lock("a", by(alice, {.max_hold = 5s}));
  reenters();
  advance(10s);
  confirms();
  feed(fed);
  advance(0ms);
  confirms();
  CHECK(left(other) == 30s - drift);
}

TEST_CASE_METHOD(engine_fixture, "a doubt while a renewal is in flight is followed by one more") {
  const auto a = hold("a"), next = lock("a");
  acknowledges("a");
  advance(10s);
  publishes("a");  // perhaps after the renewal had run
  confirms();
  advance(20ms);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  CHECK(sent("renew") == 2);
  confirms_nothing();
  CHECK(state(a) == lease_state::lost);
}

// ---- the link

TEST_CASE_METHOD(engine_fixture, "a hold that a re-entry takes up again is watched") {
  const owner alice;
  const auto a = hold("a", by(alice)), b = hold("b"), again = lock("a", by(alice, {.ttl = 60s, .renew = true}));
  drop(a);  // disarmed, behind the re-entry
  const auto u = unlock(b);
  CHECK_FALSE(server.watched());
  reenters();
  CHECK(again.granted());
  CHECK(server.watched());
}

TEST_CASE_METHOD(engine_fixture, "every hold is suspended when the link goes down and confirmed when it is up") {
  const auto a = hold("a");
  const auto b = hold("b", with({.ttl = 20s}));
  CHECK(server.watched());
  heard();
  link_down();
  CHECK(heard() == "suspended suspended");
  CHECK(last_event().reason == errc::unreachable);
  CHECK(state(a) == lease_state::suspended);
  CHECK(state(b) == lease_state::suspended);
  advance(1s);
  link_up();
  advance(0ms);
  CHECK(last_sent() ==
        "renew(b, a; 18986, 30000, #2, #1)");  // the one that ends first; b is not renewed, only confirmed
  const auto valid_b = b.value()->of->valid_until();
  confirms();
  CHECK(heard() == "restored restored");
  CHECK(state(b) == lease_state::held);
  CHECK(b.value()->of->valid_until() == valid_b);
  CHECK(left(a) == 30s - drift);
  advance(20s);
  CHECK(state(b) == lease_state::lost);
}

TEST_CASE_METHOD(engine_fixture, "a confirmation that fails is repeated also for a lease that is not renewed") {
  const auto a = hold("a", with({.ttl = 20s}));
  link_down();
  link_up();
  advance(0ms);
  fails(errc::unconfirmed);
  CHECK(state(a) == lease_state::suspended);
  advance(400ms);
  CHECK(last_sent() == "renew(a; 19660, #1, 19663)");
  confirms();
  CHECK(state(a) == lease_state::held);
}

TEST_CASE_METHOD(engine_fixture, "a hold that is gone after the outage is lost as soon as the link is up") {
  const auto a = hold("a", with({.ttl = 20s}));
  link_down();
  link_up();
  advance(0ms);
  confirms_nothing();
  CHECK(state(a) == lease_state::lost);
}

TEST_CASE_METHOD(engine_fixture, "a renewal that was in flight when the link went down is told of once") {
  const auto a = hold("a");
  advance(10s);
  heard();
  link_down();
  const auto words = heard();
  CHECK((words == "suspended renewal_failed" || words == "renewal_failed suspended"));
}

TEST_CASE_METHOD(engine_fixture, "the link is watched while something is held") {
  CHECK_FALSE(server.watched());
  const auto a = hold("a");
  CHECK(server.watched());
  unlock(a);
  CHECK_FALSE(server.watched());
  frees();
}

TEST_CASE_METHOD(engine_fixture,
                 "the first hold begins the watch, and the end of the last one ends it behind its release") {
  std::string calls;
  server.on_watch = [&](bool on) { calls += on ? "on, " : "off behind " + last_sent(); };
  const auto a = hold("a"), b = hold("b");
  unlock(a);
  frees();
  const auto c = hold("c");
  unlock(b);
  frees();
  CHECK(calls == "on, ");
  unlock(c);
  CHECK(calls == "on, off behind release(c; publish, redisson_lock__channel:{c}, #3)");
}

TEST_CASE_METHOD(engine_fixture, "the link is not watched for a lease that is lost") {
  const auto a = hold("a", with({.ttl = 1s}));
  advance(1s);
  CHECK(state(a) == lease_state::lost);
  not_yours();
  CHECK_FALSE(server.watched());
}

TEST_CASE_METHOD(engine_fixture, "success of another command about the hold restores it") {
  const owner alice;
  const auto a = hold("a", by(alice));
  advance(10s);
  fails(errc::unconfirmed);
  CHECK(state(a) == lease_state::suspended);
  heard();
  SECTION("re-entry") {
    const auto inner = lock("a", by(alice));
    reenters();
    CHECK(inner.granted());
    CHECK(heard() == "restored reentered");
  }
  SECTION("renew") {
    const auto renewed = renew(a);
    confirms();
    CHECK(renewed.succeeded());
    CHECK(heard() == "restored");
  }
  CHECK(state(a) == lease_state::held);
  const auto before = sent("renew");
  advance(10s - 1ns);
  CHECK(sent("renew") == before);
  advance(1ns);
  CHECK(sent("renew") == before + 1);
}

TEST_CASE_METHOD(engine_fixture, "a watchdog with nothing to do has no timer") {
  const auto a = hold("a");
  const auto b = hold("b");
  unlock(a);
  frees();
  CHECK_FALSE(timers.idle());
  unlock(b);
  frees();
  CHECK(timers.idle());
}

// ---- keys that move

TEST_CASE_METHOD(engine_fixture, "a key that has moved is renewed in the queue of its new node") {
  const auto a = hold("a"), b = hold("b");
  move({"b"}, 1);
  CHECK(server.count() == 2);
  link_down(0);
  CHECK(state(a) == lease_state::suspended);
  CHECK(state(b) == lease_state::held);
  advance(10s);
  REQUIRE(in_flight() == 1);
  CHECK(last_sent() == "renew(b; 30000, #2)");
  CHECK(server.last().node == 1);
  confirms();
  link_down(1);
  CHECK(state(b) == lease_state::suspended);
}

TEST_CASE_METHOD(engine_fixture, "what waits for a node that is down is confirmed at once where it has moved to") {
  const auto a = hold("a"), b = hold("b");
  link_down(0);
  advance(11s);  // the renewals are due
  CHECK(server.count() == 2);
  move({"b"}, 1);
  REQUIRE(in_flight() == 1);
  CHECK(last_sent() == "renew(b; 30000, #2)");
  CHECK(server.last().node == 1);
  confirms();
  CHECK(state(b) == lease_state::held);
  CHECK(left(b) == 30s - drift);
  CHECK(state(a) == lease_state::suspended);
  link_up(0);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  confirms();
  CHECK(state(a) == lease_state::held);
}

TEST_CASE_METHOD(engine_fixture, "a suspended lease that is not renewed is confirmed where it has moved to") {
  const auto a = hold("a", with({.ttl = 20s}));
  link_down(0);
  REQUIRE(state(a) == lease_state::suspended);
  move({"a"}, 1);
  CHECK(last_sent() == "renew(a; 19996, #1)");
  confirms();
  CHECK(state(a) == lease_state::held);
}

TEST_CASE_METHOD(engine_fixture, "a hold that the new node does not have is lost at once") {
  const auto a = hold("a");
  link_down(0);
  move({"a"}, 1);
  confirms_nothing();
  CHECK(state(a) == lease_state::lost);
}

TEST_CASE_METHOD(engine_fixture, "a hold that has moved to a node that is down is suspended until it is up") {
  lives_on(1, "b");
  const auto a = hold("a"), b = hold("b");
  link_down(1);
  move({"a"}, 1);
  CHECK(state(a) == lease_state::suspended);
  advance(10s);
  CHECK(in_flight() == 0);
  link_up(1);
  CHECK(last_sent() == "renew(a, b; 30000, 30000, #1, #2)");
  confirms();
  CHECK(state(a) == lease_state::held);
}

TEST_CASE_METHOD(engine_fixture,
                 "keys that move back and forth during an outage are renewed where they are in the end") {
  const auto a = hold("a");
  link_down(0);
  link_down(1);
  advance(10s);
  move({"a"}, 1);
  move({"a"}, 0);
  move({"a"}, 1);
  CHECK(in_flight() == 0);
  link_up(0);
  CHECK(in_flight() == 0);
  link_up(1);
  REQUIRE(in_flight() == 1);
  CHECK(server.last().node == 1);
  confirms();
  CHECK(state(a) == lease_state::held);
}

TEST_CASE_METHOD(engine_fixture, "moves while nothing is suspended send nothing and change no plan") {
  const auto a = hold("a");
  const auto due = timers.next_due();
  for (detail::node_id n = 1; n <= 10; ++n) move({"a"}, n);
  CHECK(timers.next_due() == due);
  CHECK(server.count() == 1);
  CHECK(state(a) == lease_state::held);
}

TEST_CASE_METHOD(engine_fixture, "a renewal that fails after its key has moved is repeated at once, and only once") {
  const auto a = hold("a");
  advance(10s);
  move({"a"}, 1);
  CHECK(sent("renew") == 1);  // it is under way, and may be answered
  fails(errc::unconfirmed);
  advance(0ms);
  CHECK(sent("renew") == 2);
  CHECK(server.last().node == 1);
  fails(errc::unreachable);
  advance(499ms);
  CHECK(sent("renew") == 2);
  advance(1ms);
  CHECK(sent("renew") == 3);
  confirms();
  CHECK(state(a) == lease_state::held);
}
