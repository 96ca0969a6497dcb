// SPDX-License-Identifier: BSL-1.0
// Clients that pass a lock on to their own waiters, and leave it to others after a turn.
#include "protocol/derived_keys.hpp"
#include "unit/sync/starving.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

const asking in_block{{}, {}, &detail::fenced_lock_in_turns};

struct turns : engine_fixture {
  turns() : engine_fixture(config()) {}

  void grants_tokens(long long first, long long spare) { answers(replies::integers({first, spare})); }
  /// Of `a`: so many heard of it.
  void frees_and_tells(long long subscribers) { answers(redis::reply(replies::integer(subscribers))); }
  /// The holder is no client of ours.
  void barged(milliseconds holder_ttl) { answers(replies::integer(-2 - holder_ttl.count())); }
  lock_call waiter(asking wanted = {}) {
    auto waiting = lock("a", wanted);
    CHECK(waiting.waits());
    return waiting;
  }
};

/// A client of a cluster with pubsub=both.
struct on_both_channels : turns {
  lock_call call_lock() {
    const lock_call asked;
    const auto both = std::make_shared<const detail::lock_keys>(
        detail::plain_lock, "a", detail::naming{.prefix = {}, .word = detail::publish_word::both});
    locks->lock(both, {.owner = owner(), .asked = detail::resolve_terms(settings, {})},
                [asked](detail::lock_answer answer) { asked.answer(answer.failed, std::move(answer.value)); });
    return asked;
  }
  /// Of a release by a client like this one.
  void is_told() {
    server.push(channel("a"), "00");
    server.push(channel("a"), "0");
    run();
  }
};

}  // namespace

TEST_CASE_METHOD(turns, "a lock goes to the next waiter of this client without a command") {
  const auto first = hold("a");
  const auto second = waiter(), third = waiter();
  const auto before = server.count();
  heard();
  CHECK(unlock(first).succeeded());
  CHECK(second.granted());
  CHECK(third.waits());
  CHECK(heard() == "passed acquired");
  CHECK(unlock(second).succeeded());
  CHECK(third.granted());
  CHECK(server.count() == before);
  unlock(third);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
}

TEST_CASE_METHOD(engine_fixture, "without turns each hold is released and the next is acquired") {
  const auto first = hold("a");
  const auto second = lock("a");
  unlock(first);
  CHECK(sent("release") == 1);
  CHECK(second.waits());
}

TEST_CASE_METHOD(turns, "each pass makes a lease of its own, and one that was passed on is released") {
  const auto first = hold("a");
  const auto second = waiter();
  const std::string id(first.value()->of->id());
  unlock(first);
  CHECK(first.value()->of->state() == lease_state::released);
  CHECK(first.value()->of->left() == 0ns);
  CHECK(second.value()->of->state() == lease_state::held);
  CHECK(std::string_view(second.value()->of->id()) == id + "/1");
  CHECK(last_event().id == id + "/1");
  CHECK(unlock(first).failed_with(errc::not_held));
}

TEST_CASE_METHOD(turns, "a pass prolongs nothing: the lease is valid for as long as the one before was") {
  const auto first = hold("a");
  const auto until = first.value()->of->valid_until();
  const auto second = waiter();
  advance(1ms);
  unlock(first);
  CHECK(second.value()->of->valid_until() == until);
  server.on_command = [](const auto&) { return replies::integers({1}); };
  advance(10s);
  CHECK(sent("renew") == 1);
  CHECK(second.value()->of->valid_until() > until);
}

TEST_CASE_METHOD(turns, "a hold that was passed on is lost with its field, and who waits then asks Redis") {
  const auto first = hold("a");
  const auto second = waiter(), third = waiter();
  unlock(first);
  advance(10s);
  confirms_nothing();
  CHECK(second.value()->of->state() == lease_state::lost);
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  CHECK(third.waits());
}

TEST_CASE_METHOD(turns, "a turn ends after 20 ms however many wait") {
  const auto first = hold("a");
  std::vector<lock_call> others;
  for (int n = 0; n < 30; ++n) others.push_back(waiter());
  unlock(first);
  advance(20ms);
  unlock(others[0]);
  CHECK(others[1].waits());
  CHECK(sent("release") == 1);
}

TEST_CASE_METHOD(turns, "who came after the turn began has the next one") {
  const auto first = hold("a");
  const auto second = waiter();
  acknowledges("a");
  advance(2ms);
  unlock(first);
  CHECK(second.waits());
  CHECK(sent("release") == 1);
  frees_and_tells(1);
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  const auto third = waiter();
  grants();
  CHECK(second.granted());
  advance(3ms);
  unlock(second);
  CHECK(third.granted());
}

TEST_CASE_METHOD(turns, "after its turn a client leaves the lock to the others that have heard of the release") {
  const auto first = hold("a");
  const auto second = waiter();
  acknowledges("a");
  advance(2ms);
  unlock(first);
  frees_and_tells(3);  // two of them are others
  CHECK(sent("acquire") == 1);
  SECTION("until each may have had it") {
    advance(2ms + 1'200us - 1ns);
    CHECK(sent("acquire") == 1);
    advance(1ns);
    CHECK(sent("acquire") == 2);
  }
  SECTION("until each has had it") {
    publishes("a");  // our own
    CHECK(sent("acquire") == 1);
    advance(200us);
    publishes("a");
    advance(299us);
    CHECK(sent("acquire") == 1);
    publishes("a");
    CHECK(sent("acquire") == 2);
  }
  SECTION("who asks once does not wait") {
    second.cancel();
    run();
    try_lock("a");
    CHECK(sent("acquire") == 2);
  }
}

TEST_CASE_METHOD(on_both_channels, "of a release that is told on both channels a client hears one message") {
  const auto first = call_lock();
  grants();
  const auto second = call_lock();
  acknowledges("a");
  advance(2ms);
  unlock(first);
  CHECK(last_sent() == "release(a; both, redisson_lock__channel:{a}, #1)");
  frees_and_tells(3);  // two of them are others
  is_told();           // its own
  advance(200us);
  is_told();
  advance(599us);
  CHECK(sent("acquire") == 1);
  SECTION("of the last") { is_told(); }
  SECTION("of the last, by Redisson on the sharded channel alone") { publishes("a"); }
  CHECK(sent("acquire") == 2);
  busy(10s);
  server.push(channel("a"), "00");
  server.push(channel("a"), "012");  // of a semaphore with 12 permits left
  run();
  CHECK(sent("acquire") == 2);
  is_told();
  CHECK(sent("acquire") == 3);
  busy(10s);
  CHECK(in_flight() == 0);
  CHECK(second.waits());
}

TEST_CASE_METHOD(turns, "who listens on one channel hears of a release that is told on both") {
  lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  server.push(channel("a"), "00");
  run();
  CHECK(sent("acquire") == 3);
}

TEST_CASE_METHOD(turns, "a lock() right after the own unlock() waits if others have heard of that") {
  const auto first = hold("a");
  unlock(first);
  frees_and_tells(2);
  const auto again = waiter();
  CHECK(sent("acquire") == 1);
  CHECK(subscribers("a") == 1);  // it hears of each release meanwhile
  acknowledges("a");
  CHECK(sent("acquire") == 1);
  advance(2ms + 1'200us);
  CHECK(sent("acquire") == 2);
  grants();
  CHECK(again.granted());
}

TEST_CASE_METHOD(turns, "a call with a deadline asks at half of its time at the latest") {
  const auto first = hold("a");
  unlock(first);
  frees_and_tells(50);
  try_lock_for("a", 4ms);
  advance(2ms - 1ns);
  CHECK(sent("acquire") == 1);
  advance(1ns);
  CHECK(sent("acquire") == 2);
}

TEST_CASE_METHOD(turns, "nothing is left of a name when the rest is over") {
  unlock(hold("a"));
  frees_and_tells(9);
  advance(20ms);
  check_nothing_is_left();
}

TEST_CASE_METHOD(turns, "a waiter that was cancelled is passed by") {
  const auto first = hold("a");
  const auto second = waiter(), third = waiter();
  second.cancel();
  unlock(first);
  CHECK_FALSE(second.granted());
  CHECK(third.granted());
}

TEST_CASE_METHOD(turns, "who needs more than a pass can give asks Redis") {
  const auto first = hold("a");
  SECTION("a token, where the hold has none") { waiter(in_block); }
  SECTION("a TTL of its own, which is not renewed") { waiter(with({.ttl = 1s})); }
  SECTION("a TTL of its own as long as that of the hold: it begins when it is granted") { waiter(with({.ttl = 30s})); }
  SECTION("a TTL that is not covered") { waiter(with({.ttl = 60s, .renew = true})); }
  SECTION("a TTL that is shorter by little, and would be valid for less") {
    waiter(with({.ttl = 29'999ms, .renew = true}));
  }
  SECTION("a shorter TTL: so long others wait if it is killed") { waiter(with({.ttl = 10s, .renew = true})); }
  SECTION("replicas") { waiter(with({.min_replicas = 1})); }
  SECTION("several locks") { lock_all({"a", "b"}); }
  unlock(first);
  CHECK(sent("release") == 1);
}

TEST_CASE_METHOD(turns, "a grant of a fenced lock comes with a block of tokens, of which each pass has the next") {
  const auto first = lock("a", in_block);
  CHECK(last_sent() == "acquire_fenced(a, redisson_lock_token:{a}; 30000, #1, 1000)");
  grants_tokens(7'000, 2);
  const auto second = waiter(in_block), third = waiter(in_block), fourth = waiter(in_block);
  unlock(first);
  unlock(second);
  CHECK(first.value()->of->token() == 7'000);
  CHECK(second.value()->of->token() == 7'001);
  CHECK(third.value()->of->token() == 7'002);
  CHECK(sent("release") == 0);
  unlock(third);
  CHECK(fourth.waits());
  CHECK(sent("release") == 1);
}

TEST_CASE_METHOD(turns, "a fenced grant without spare tokens is not passed on to who wants one") {
  const auto first = lock("a", in_block);
  grants_tokens(7'000, 0);
  const auto second = waiter(in_block);
  unlock(first);
  CHECK(second.waits());
  CHECK(sent("release") == 1);
}

TEST_CASE_METHOD(turns, "a hold without a token may follow one with a token, and then none with a token") {
  const auto first = lock("a", in_block);
  grants_tokens(7'000, 999);
  const auto second = waiter(), third = waiter(in_block);
  unlock(first);
  CHECK(second.granted());
  CHECK(second.value()->of->token() == std::nullopt);
  unlock(second);
  CHECK(third.waits());
  CHECK(sent("release") == 1);
}

TEST_CASE_METHOD(turns, "who re-enters a hold that was passed on has the token of that hold") {
  const owner me;
  const auto first = lock("a", in_block);
  grants_tokens(7'000, 999);
  auto mine = in_block;
  mine.who = me;
  const auto second = waiter(mine), inner = waiter(mine);
  unlock(first);
  reenters();
  CHECK(second.value()->of->token() == 7'001);
  CHECK(inner.value()->of->token() == 7'001);
}

TEST_CASE_METHOD(turns, "a hold that Redis counts twice is passed on, and counted once again") {
  const owner me;
  const auto first = hold("a", by(me));
  const auto inner = lock("a", by(me, {.ttl = 30s}));
  const auto next = waiter();
  unlock(first);
  inner.cancel();
  reenters();
  CHECK(next.granted());
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  CHECK(sent("release") == 0);
}

TEST_CASE_METHOD(turns, "the subscription of a line that has served all lingers until the release") {
  const auto first = hold("a");
  const auto second = waiter();
  acknowledges("a");
  unlock(first);
  REQUIRE(second.granted());
  CHECK(subscribers("a") == 1);
  SECTION("who comes meanwhile finds it") {
    const auto third = waiter();
    CHECK(subscribers("a") == 1);
    unlock(second);
    CHECK(third.granted());
    unlock(third);
    frees_and_tells(1);
  }
  SECTION("its client is one of those that were told") {
    unlock(second);
    frees_and_tells(1);
    lock("a");
    CHECK(sent("acquire") == 2);  // it has nobody to rest for
    grants();
  }
  SECTION("and until others have had their turn") {
    unlock(second);
    frees_and_tells(3);
    CHECK(subscribers("a") == 1);
    publishes("a");  // our own
    advance(2ms + 1'200us);
  }
  SECTION("who comes while others have their turn finds it as well") {
    unlock(second);
    frees_and_tells(2);
    publishes("a");
    const auto third = waiter();
    advance(2ms + 600us);
    CHECK(sent("acquire") == 2);
    grants();
    CHECK(third.granted());
    unlock(third);
    frees_and_tells(1);
  }
  SECTION("for a second at most") {
    advance(1s);
    CHECK(subscribers("a") == 0);
    unlock(second);
    frees_and_tells(0);
  }
  SECTION("not beyond a loss") {
    renew(second);
    confirms_nothing();
    CHECK(second.value()->of->state() == lease_state::lost);
  }
  CHECK(subscribers("a") == 0);
}

TEST_CASE_METHOD(turns, "a line whose last waiter gives up does not linger") {
  const auto first = hold("a");
  const auto second = waiter();
  acknowledges("a");
  second.cancel();
  run();
  CHECK(subscribers("a") == 0);
}

TEST_CASE_METHOD(turns, "who becomes the first of a line that rests asks by its own deadline") {
  unlock(hold("a"));
  frees_and_tells(50);
  const auto first = waiter();
  try_lock_for("a", 4ms);
  first.cancel();
  run();
  advance(2ms - 1ns);
  CHECK(sent("acquire") == 1);
  advance(1ns);
  CHECK(sent("acquire") == 2);
}

TEST_CASE_METHOD(turns, "the message of the own release does not end a rest whose length its answer has yet to tell") {
  const auto first = hold("a");
  const auto second = waiter();
  acknowledges("a");
  advance(2ms);
  unlock(first);
  publishes("a");
  CHECK(sent("acquire") == 1);
  frees_and_tells(3);
  CHECK(sent("acquire") == 1);
  advance(2ms + 1'200us);
  CHECK(sent("acquire") == 2);
  CHECK(second.waits());
}

TEST_CASE_METHOD(turns,
                 "beside clients that take no turns a waiter asks when a hold is nearly over, but not for ever") {
  const auto waiting = waiter();
  barged(10s);
  acknowledges("a");
  barged(10s);
  publishes("a");
  barged(10s);
  for (int n = 0; n < 12; ++n) {  // at once, as it is not known how long they hold
    advance(100us);
    barged(10s);
  }
  advance(3'800us);
  const auto asked = sent("acquire") + 1;
  publishes("a");  // after 5 ms: the lock may stay free
  CHECK(sent("acquire") == asked);
  barged(10s);
  advance(4'500us - 1ns);
  CHECK(sent("acquire") == asked);
  advance(1ns);
  for (std::size_t n = 1; n <= 12; ++n) {
    REQUIRE(sent("acquire") == asked + n);
    barged(10s);
    advance(100us);
  }
  CHECK(sent("acquire") == asked + 13);
  barged(10s);
  advance(100ms);
  CHECK(sent("acquire") == asked + 13);
  publishes("a");
  advance(4'500us);
  CHECK(sent("acquire") == asked + 14);
  grants();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(turns, "a waiter that finds the lock held in its cool-down goes on with it") {
  const auto waiting = waiter(), next = waiter(), third = waiter();
  barged(10s);
  acknowledges("a");
  grants();
  const auto last = waiter();
  advance(30ms);
  unlock(waiting);
  REQUIRE(next.granted());  // a turn of long holds has several of them
  advance(30ms);
  unlock(next);
  REQUIRE(third.granted());
  unlock(third);
  frees_and_tells(2);
  publishes("a");  // our own
  CHECK(last.waits());
  const auto asked = sent("acquire");
  advance(2ms);  // silence
  CHECK(sent("acquire") == asked + 1);
  barged(10s);
  for (int n = 0; n < 3; ++n) {  // as many holds as the own turn had
    CHECK(sent("acquire") == asked + 1);
    publishes("a");
  }
  CHECK(sent("acquire") == asked + 2);
  grants();
  CHECK(last.granted());
}

TEST_CASE_METHOD(turns, "what is not sure is not passed on") {
  const auto first = hold("a");
  const auto second = waiter();
  SECTION("a hold that cannot be confirmed") {
    link_down();
    unlock(first);
    CHECK(second.waits());
  }
  SECTION("a hold that was broken by force") {
    force_unlock("a");
    answers(replies::integer(1));
    unlock(first);
    CHECK(second.waits());
  }
  SECTION("a hold whose validity is over") {
    advance(30s);
    run();
    CHECK(second.waits());
    CHECK(first.value()->of->state() == lease_state::lost);
  }
}

TEST_CASE_METHOD(turns, "a re-entered hold is passed on at its last unlock, and does not wait for its count") {
  const owner me;
  const auto first = hold("a", by(me));
  const auto inner = lock("a", by(me));
  reenters();
  const auto second = waiter();
  CHECK(unlock(inner).succeeded());
  SECTION("which is on its way") {}
  SECTION("which is told once more where it was refused") { fails(errc::server_refused); }
  unlock(first);
  CHECK(second.granted());
  CHECK(in_flight() == 1);
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  answers(replies::integer(0));  // it is gone, which the hold hears of that has it now
  CHECK(second.value()->state() == lease_state::lost);
}

TEST_CASE_METHOD(turns,
                 "a count that is answered while the last unlock waits is known to the hold that it is passed to") {
  const owner me;
  const auto first = hold("a", by(me));
  const auto inner = lock("a", by(me));
  const auto waiting = waiter();
  const auto asks = try_lock("a", by(me, {.ttl = 30s}));
  unlock(inner);
  unlock(first);  // waits for the re-entry that asks
  reenters();     // the count: two
  errs("NOPERM this user has no permissions");
  REQUIRE(waiting.granted());
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
}

TEST_CASE_METHOD(turns, "a hold is passed on past a re-entry that was not answered, which goes to the line") {
  const owner me;
  const auto first = hold("a", by(me));
  const auto second = waiter();
  const auto inner = lock("a", by(me, {.ttl = 30s}));
  fails(errc::unconfirmed);
  CHECK(inner.waits());
  unlock(first);
  CHECK(second.granted());
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  CHECK(inner.waits());
}

TEST_CASE_METHOD(turns, "a loss that the hold before has found out ends the hold that it was passed to") {
  const auto first = hold("a");
  const auto second = waiter();
  const auto renewed = renew(first);
  unlock(first);
  CHECK(second.granted());
  confirms_nothing();
  CHECK(renewed.failed_with(errc::not_held));
  CHECK(second.value()->of->state() == lease_state::lost);
}

TEST_CASE_METHOD(turns, "a release of another that comes where the own one was expected wakes all the same") {
  const auto first = hold("a");
  advance(2ms);
  const auto second = waiter();
  acknowledges("a");
  unlock(first);
  frees_and_tells(1);
  busy(10s);
  CHECK(sent("acquire") == 2);
  publishes("a");
  CHECK(sent("acquire") == 3);
  CHECK(second.waits());
}

TEST_CASE_METHOD(turns, "who is not known to listen yet is not one of those that were told") {
  const auto first = hold("a");
  advance(2ms);
  waiter();
  unlock(first);
  frees_and_tells(1);
  CHECK(sent("acquire") == 1);
  advance(2ms + 600us);
  CHECK(sent("acquire") == 2);
}

TEST_CASE_METHOD(turns, "a rest says nothing of the lock: without an answer afterwards the server is unreachable") {
  unlock(hold("a"));
  frees_and_tells(2);
  const auto bounded = try_lock_for("a", 100ms);
  advance(50ms);
  CHECK(sent("acquire") == 2);
  link_down();
  server.silence_limit = 10ms;
  advance(50ms);
  CHECK(bounded.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(turns, "releases that come in a rest cost nothing of the budget of wake-ups") {
  unlock(hold("a"));
  frees_and_tells(60);
  const auto again = waiter();
  acknowledges("a");
  for (int n = 0; n < 60; ++n) publishes("a");
  CHECK(sent("acquire") == 2);
  busy(10s);
  publishes("a");
  CHECK(sent("acquire") == 3);
}

TEST_CASE_METHOD(turns, "who gets a lock by a pass re-enters it, and his other waiters do") {
  const owner me;
  const auto first = hold("a");
  const auto mine = waiter(by(me)), mine_too = waiter(by(me));
  unlock(first);
  CHECK(mine.granted());
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
  reenters();
  CHECK(mine_too.granted());
  CHECK(mine_too.value()->of == mine.value()->of);
}

TEST_CASE_METHOD(turns, "one of several locks is had by a pass as well") {
  const auto first = hold("a");
  const auto any = lock_any({"a"});
  unlock(first);
  CHECK(any.granted());
}

TEST_CASE_METHOD(turns, "a hold that was passed on is that of the coroutine that waited for it") {
  const int one = 0, other = 0;
  const auto first = hold("a", of(&one));
  const auto second = lock("a", of(&other));
  unlock(first);
  REQUIRE(second.granted());
  REQUIRE(sent("acquire") + sent("set") <= 1);
  heard();
  lock("a", of(&one));
  CHECK(heard().empty());
  lock("a", of(&other));
  CHECK(heard() == "waiting_for_ourselves");
}

TEST_CASE_METHOD(turns, "a client that closes loses a hold that was passed on as any other") {
  const auto first = hold("a");
  const auto second = waiter(), third = waiter();
  unlock(first);
  const auto closed = close();
  CHECK(second.value()->of->state() == lease_state::lost);
  CHECK(third.failed_with(errc::shutting_down));
  frees_and_tells(2);
  CHECK(closed.succeeded());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(turns, "a simple lock is passed on, and left now and then to those who look and do not listen") {
  const auto channel = detail::channel_of(*keys("a", detail::simple_lock));
  const auto first = lock("a", simple());
  answers(replies::ok());
  const auto second = waiter(simple());
  server.acknowledge(channel);
  unlock(first);
  REQUIRE(second.granted());
  const auto third = waiter(simple());
  advance(250ms);
  unlock(second);
  CHECK(sent("simple_release") == 1);
  frees_and_tells(1);
  server.push(channel, "0");
  run();
  advance(20ms - 1ns);
  CHECK(sent("set") == 1);
  advance(1ns);
  CHECK(sent("set") == 2);
  CHECK(third.waits());
}

TEST_CASE_METHOD(turns, "who has heard that its lock was freed by another does not pass it on") {
  play();
  const auto first = lock("a");
  run();
  const auto second = waiter();
  run();
  const std::string channel = "redisson_lock__channel:{a}";
  // another client force-unlocks, and takes it
  node.command({"DEL", "a"});
  server.push(channel, "0");
  node.command({"HSET", "a", "other", "1"});
  node.command({"PEXPIRE", "a", "30000"});
  run();
  advance(1ms);
  unlock(first);
  run();
  advance(5s);
  CHECK(second.waits());
  CHECK(first.value()->of->state() == lease_state::released);
}

TEST_CASE_METHOD(turns, "the message of the own release is no news to who leaves the lock to those who look") {
  const auto channel = detail::channel_of(*keys("a", detail::simple_lock));
  const auto first = lock("a", simple());
  answers(replies::ok());
  const auto second = waiter(simple());
  server.acknowledge(channel);
  unlock(first);
  REQUIRE(second.granted());
  advance(250ms);
  unlock(second);  // nobody waits: the subscription lingers
  frees_and_tells(1);
  REQUIRE(server.subscribers(channel) == 1);
  server.push(channel, "0");  // our own
  run();
  SECTION("the window stays") {
    const auto third = waiter(simple());
    advance(19ms);
    CHECK(sent("set") == 1);
  }
  SECTION("and nobody was found") {
    const auto third = waiter(simple());  // keeps the entry
    advance(20ms);
    REQUIRE(sent("set") == 2);
    answers(replies::ok());
    REQUIRE(third.granted());
    const auto fourth = waiter(simple());
    unlock(third);
    REQUIRE(fourth.granted());
    const auto fifth = waiter(simple());
    advance(20ms);
    unlock(fourth);  // 40 ms after the last window
    frees_and_tells(1);
    CHECK(sent("set") == 3);
    CHECK(fifth.waits());
  }
}

TEST_CASE_METHOD(turns, "a rest that a release of another prolongs keeps the subscription, and is kept") {
  const auto first = hold("a");
  const auto second = waiter();
  acknowledges("a");
  unlock(first);
  REQUIRE(second.granted());
  unlock(second);
  frees_and_tells(3);  // two others: the rest is 2 ms + 1.2 ms, if nothing is heard
  publishes("a");      // our own
  advance(3ms);
  publishes("a");  // the first other: now until 3 ms + 1 * 2 * 3 ms = 9 ms
  std::optional<lock_call> third;
  SECTION("who waits since before, rests until then") {
    third = waiter();
    advance(1ms);
    CHECK(sent("acquire") == 1);
    CHECK(subscribers("a") == 1);
    advance(5ms - 1ns);
    CHECK(sent("acquire") == 1);
  }
  SECTION("who comes a little later") {
    advance(1ms);
    CHECK(subscribers("a") == 1);
    third = waiter();
    CHECK(sent("acquire") == 1);
  }
}

TEST_CASE_METHOD(turns, "who looks finds its window also where nobody waits for an instant between two turns") {
  bool window = false;
  for (int n = 0; n < 20 && !window; ++n) {
    const auto first = lock("a", simple());
    window = in_flight() == 0;  // it rests
    if (window) break;
    answers(replies::ok());
    const auto second = waiter(simple());
    unlock(first);
    REQUIRE(second.granted());
    advance(19'900us);
    unlock(second);
    frees_and_tells(0);
    advance(100us);
  }
  CHECK(window);
}

TEST_CASE_METHOD(turns, "a try_lock() in vain leaves a client that rests its subscription") {
  const auto first = hold("a");
  const auto second = waiter();
  acknowledges("a");
  unlock(first);
  REQUIRE(second.granted());
  unlock(second);
  frees_and_tells(3);
  REQUIRE(subscribers("a") == 1);
  const auto tried = try_lock("a");
  busy(10s);
  CHECK(tried.refused());
  CHECK(subscribers("a") == 1);
}

TEST_CASE("no memory as a turn ends leaves nothing of a name") {
  const auto unlocked = [](turns& client) {
    client.unlock(client.hold("a"));
    client.server.reply(client.server.open().front(), redis::reply(replies::integer(3)));
    return nullptr;
  };
  starve<turns>(
      unlocked, [](turns& client, auto) { client.run(); },
      [](turns& client, auto) {
        client.run();
        client.advance(60s);
        CHECK(client.locks->idle());
      });
}
