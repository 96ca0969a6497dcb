// SPDX-License-Identifier: BSL-1.0
#include "sync/vote/quorum_call.hpp"

#include "support/no_memory.hpp"
#include "support/skip.hpp"
#include "unit/sync/quorum_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE_METHOD(quorum_fixture, "a majority's grants are a lock, valid from before the first was asked") {
  const auto c = lock("a");
  const auto asked = clock.now();
  clock.skip(40ms);
  answer({0, 2});
  CHECK(c.waits());
  answer({4});
  REQUIRE(c.granted());
  CHECK(c.value()->of->valid_until() == asked + 30s - 300ms - 2ms);
  CHECK(where("a") == "ACE");
}

TEST_CASE_METHOD(quorum_fixture,
                 "a try is over when a majority has refused and the others had as long again to answer") {
  for (const std::size_t n : {0, 1, 2}) nodes[n]->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = try_lock("a");
  clock.skip(5ms);
  answer({0, 1, 2});
  CHECK(c.waits());
  advance(5ms);
  CHECK(c.refused());
}

TEST_CASE_METHOD(quorum_fixture, "without a majority a try fails, and says of each why") {
  const auto c = try_lock("a");
  answer({0, 1});
  CHECK(c.waits());
  advance(600ms);
  REQUIRE(c.failed_with(errc::quorum_failed));
  INFO(c.detail());
  CHECK(c.detail().find("2 of 5 primaries, and 3 are needed; node2: ") == 0);
  answer({0, 1});
  CHECK(where("a").empty());
}

TEST_CASE_METHOD(quorum_fixture, "what is lost with its connection is not waited for, in nobody's way") {
  for (const std::size_t n : {2, 3, 4}) at[n]->link_down();
  const auto tried = try_lock("a");
  const auto waits = lock("b");
  clock.skip(3ms);
  answer({0, 1});
  advance(3ms);
  CHECK(tried.failed_with(errc::quorum_failed));
  CHECK(waits.waits());
  answer({0, 1});
  CHECK((where("a") + where("b")).empty());
}

TEST_CASE_METHOD(quorum_fixture, "where nobody else has it in part a slow primary is waited for while it may vote") {
  unlock(granted("b"));
  answer_all();
  for (const std::size_t n : {3, 4}) at[n]->link_down();
  const auto c = try_lock("a");
  clock.skip(1ms);
  answer({0, 1});
  advance(490ms);
  CHECK(c.waits());
  answer({2});
  CHECK(c.granted());
}

TEST_CASE_METHOD(quorum_fixture, "a failed attempt is given back where it was granted, and nowhere else") {
  for (const std::size_t n : {0, 1, 2}) nodes[n]->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = try_lock("a");
  answer({0, 1, 2, 3, 4});
  CHECK(c.refused());
  for (const std::size_t n : {0, 1, 2}) CHECK(at[n]->count() == 1);
  for (const std::size_t n : {3, 4}) CHECK(at[n]->count() == 2);
  CHECK(where("a") == "ABC");
}

TEST_CASE_METHOD(quorum_fixture, "a primary that is reached late is asked for what is left of the TTL") {
  at[4]->link_down();
  const auto c = lock("a");
  advance(100ms);
  at[4]->link_up();
  run();
  CHECK(at[4]->last().arguments().at(0) == "29900");
  CHECK(at[0]->last().arguments().at(0) == "30000");
  answer_all();
  CHECK(c.granted());
}

TEST_CASE_METHOD(quorum_fixture, "a primary that is reached too late is not asked") {
  at[4]->link_down();
  const auto c = lock("a");
  answer({0, 1, 2, 3});
  REQUIRE(c.granted());
  advance(1s);
  at[4]->link_up();
  run();
  answer_all();
  CHECK(where("a") == "ABCD");
}

TEST_CASE_METHOD(quorum_fixture, "an answer that comes after the decision counts no second time") {
  const auto c = lock("a");
  answer({0, 1, 2});
  REQUIRE(c.granted());
  answer({3, 4});
  CHECK(where("a") == "ABCDE");
  const auto freed = unlock(c);
  answer({0, 1, 2});
  CHECK(freed.succeeded());
  answer({3, 4});
  CHECK(where("a").empty());
}

TEST_CASE_METHOD(quorum_fixture, "callers who have divided the primaries try again after a random pause") {
  nodes[0]->hold("a", "stranger:1", clock.now() + 20s);
  nodes[1]->hold("a", "stranger:1", clock.now() + 20s);
  nodes[2]->hold("a", "other:1", clock.now() + 20s);
  random.number = ~std::uint64_t{0} / 2;  // half of what is possible
  const auto c = lock("a");
  clock.skip(4ms);
  answer_all();
  CHECK(c.waits());
  CHECK(where("a") == "ABC");
  for (auto& n : nodes) n->command({"DEL", "a"});
  for (std::size_t n = 0; n < 3; ++n) publish(n, "a");
  CHECK(at[0]->open().empty());  // nothing interrupts the pause
  advance(8ms);
  answer_all();
  CHECK(c.granted());
}

TEST_CASE_METHOD(quorum_fixture, "the random pause is short, however long the process was stopped") {
  for (const std::size_t n : {0, 1, 2}) nodes[n]->hold("a", n < 2 ? "stranger:1" : "other:1", clock.now() + 1h);
  random.number = ~std::uint64_t{0};
  const auto c = lock("a");
  clock.skip(25s);
  answer_all();
  for (auto& n : nodes) n->command({"DEL", "a"});
  advance(1s);
  answer_all();
  CHECK(c.granted());
}

TEST_CASE_METHOD(quorum_fixture, "callers who have divided the primaries do not wait for one that was silent before") {
  const auto first = lock("a");
  answer({0, 1, 2, 3});
  REQUIRE(first.granted());
  unlock(first);
  answer({0, 1, 2, 3});
  advance(600ms);
  for (const std::size_t n : {0, 1}) nodes[n]->hold("a", "stranger:1", clock.now() + 20s);
  random.number = ~std::uint64_t{0};
  const auto c = lock("a");
  clock.skip(2ms);
  answer({0, 1, 2, 3});
  CHECK(where("a") == "ABCD");
  advance(2ms);
  answer({0, 1, 2, 3});
  CHECK(where("a") == "AB");
  CHECK(c.waits());
}

TEST_CASE_METHOD(quorum_fixture, "a primary that is slower than the others is waited for as long as it may take") {
  const auto first = lock("a");
  answer({0, 1, 2, 3});
  clock.skip(40ms);
  answer({4});
  unlock(first);
  answer_all();
  for (const std::size_t n : {0, 1}) nodes[n]->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = lock("a");
  clock.skip(2ms);
  answer({0, 1, 2, 3});
  advance(77ms);
  answer({4});
  CHECK(c.granted());
}

TEST_CASE_METHOD(quorum_fixture, "a try is not refused because the primary that decides is late once") {
  const auto first = lock("a");
  clock.skip(1ms);
  answer_all();
  unlock(first);
  answer_all();
  for (const std::size_t n : {0, 1}) nodes[n]->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = try_lock("a");
  clock.skip(1ms);
  answer({0, 1, 2, 3});
  advance(8ms);
  answer({4});
  CHECK(c.granted());
}

TEST_CASE_METHOD(quorum_fixture,
                 "a try that has half of the votes gives them back when the last primary stays silent") {
  const auto first = lock("a");
  clock.skip(1ms);
  answer_all();
  unlock(first);
  answer_all();
  for (const std::size_t n : {0, 1}) nodes[n]->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = try_lock("a");
  clock.skip(1ms);
  answer({0, 1, 2, 3});
  advance(20ms);
  CHECK(c.refused());
  answer_all();
  CHECK(where("a") == "AB");
}

TEST_CASE_METHOD(quorum_fixture,
                 "a primary whose connection does not answer at present may take longer than its last answer did") {
  const auto first = lock("a");
  clock.skip(1ms);
  answer_all();
  unlock(first);
  answer_all();
  for (const std::size_t n : {0, 1}) nodes[n]->hold("a", "stranger:1", clock.now() + 20s);
  at[4]->silence_limit = 0ms;
  const auto c = lock("a");
  clock.skip(2ms);
  answer({0, 1, 2, 3});
  advance(100ms);
  answer({4});
  CHECK(c.granted());
}

TEST_CASE_METHOD(quorum_fixture, "behind a holder that has not all primaries a waiter waits for those that it has") {
  for (const std::size_t n : {0, 1, 2}) nodes[n]->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = lock("a");
  const auto tries = [this] { return at[0]->count(); };
  while (at[0]->subscribers("redisson_lock__channel:{a}") == 0) {
    REQUIRE(tries() < 12);
    clock.skip(2ms);
    answer_all();
    advance(1ms);
  }
  answer_all();  // acknowledged
  const auto parked = tries();
  for (const std::size_t n : {3, 4}) publish(n, "a");  // what it has given back itself
  advance(10ms);
  CHECK(tries() == parked);
  for (const std::size_t n : {0, 1, 2}) nodes[n]->command({"DEL", "a"});
  publish(1, "a");
  CHECK(tries() == parked + 1);  // two are free already: one more is a majority
  answer_all();
  CHECK(c.granted());
}

TEST_CASE_METHOD(quorum_fixture, "a waiter wakes at the message of a majority, or one round trip after the first") {
  const auto wakes = [this](std::initializer_list<std::size_t> from) {
    for (auto& n : nodes) n->command({"DEL", "a"});
    for (const auto n : from) publish(n, "a");
    return !at[0]->open().empty();
  };
  for (auto& n : nodes) n->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = lock("a");
  clock.skip(3ms);
  answer_all();
  answer_all();  // acknowledged
  CHECK_FALSE(wakes({0, 1}));
  CHECK(wakes({2}));
  for (auto& n : nodes) n->hold("a", "stranger:1", clock.now() + 20s);
  answer_all();
  advance(3ms);
  CHECK_FALSE(wakes({3}));
  advance(3ms);
  CHECK_FALSE(at[0]->open().empty());
  answer_all();
  CHECK(c.granted());
}

TEST_CASE_METHOD(quorum_fixture, "messages that no majority sends wake a waiter ever more rarely") {
  for (auto& n : nodes) n->hold("a", "stranger:1", clock.now() + 1h);
  const auto c = lock("a");
  answer_all();
  publish(4, "a");
  advance(0ms);
  clock.skip(3ms);
  answer_all();
  for (const auto pause : {6ms, 12ms, 24ms}) {
    advance(3ms);  // what is told until then is the same release
    publish(4, "a");
    advance(pause - 1ms);
    CHECK(at[0]->open().empty());
    clock.skip(1ms);
    timers.advance(0ms);
    CHECK_FALSE(at[0]->open().empty());
    clock.skip(3ms);
    answer_all();
  }
  advance(3ms);
  for (const std::size_t n : {0, 1, 2}) publish(n, "a");
  CHECK_FALSE(at[0]->open().empty());
}

TEST_CASE_METHOD(quorum_fixture, "a lock is held while a majority confirms it, and lost when too few can") {
  const auto c = lock("a");
  answer_all();
  REQUIRE(c.granted());
  for (const std::size_t n : {0, 1}) nodes[n]->command({"DEL", "a"});
  advance(10s);
  answer_all();
  CHECK(c.value()->state() == lease_state::held);
  nodes[2]->command({"DEL", "a"});
  advance(10s);
  answer_all();
  CHECK(c.value()->state() == lease_state::lost);
  answer_all();
  CHECK(where("a").empty());
}

TEST_CASE_METHOD(quorum_fixture, "a minority that answers nothing keeps no lock from being renewed") {
  const auto c = lock("a");
  answer_all();
  for (int i = 0; i < 10; ++i) {
    advance(10s);
    answer({0, 1, 2});
  }
  CHECK(c.value()->state() == lease_state::held);
  advance(1min);
  CHECK(c.value()->state() == lease_state::lost);
}

TEST_CASE_METHOD(
    quorum_fixture,
    "a primary whose renewals fail again and again is told of once, and again after it has confirmed one") {
  const auto c = granted("a");
  heard();
  const auto pass = [&](bool well) {
    for (auto left = 12s; left > 0s; left -= 1s)
      for (int i = 0; i < 5; ++i) {
        advance(200ms);
        answer({0, 1, 2, 3});
        if (well) answer({4});
        for (const auto open : at[4]->open()) at[4]->fail(open, errc::unconfirmed, "gone");
        run();
      }
    return heard();
  };
  CHECK(pass(false) == "renewal_failed");
  CHECK(pass(true).empty());
  CHECK(pass(false) == "renewal_failed");
  CHECK(c.value()->state() == lease_state::held);
}

TEST_CASE_METHOD(quorum_fixture, "a cancelled call leaves nothing anywhere, wherever it stood") {
  for (std::size_t answered = 0; answered < 5; ++answered) {
    INFO(answered << " answered");
    const auto c = lock("a");
    for (std::size_t n = 0; n < answered && c.waits(); ++n) answer({n});
    c.waits() ? c.cancel() : static_cast<void>(unlock(c));
    answer_all();
    CHECK(where("a").empty());
    CHECK(locks->idle());
  }
}

TEST_CASE_METHOD(quorum_fixture, "a primary that has refused, or was never asked, is neither renewed nor released") {
  nodes[4]->hold("a", "stranger:1", clock.now() + 1h);
  at[3]->link_down();
  const auto c = lock("a");
  answer({0, 1, 2});
  REQUIRE(c.granted());
  answer({4});
  at[3]->link_up();
  advance(10s);
  answer_all();
  CHECK(at[0]->count() == 2);
  unlock(c);
  answer_all();
  CHECK(at[0]->count() == 3);
  CHECK(at[3]->count() == 1);
  CHECK(at[4]->count() == 1);
  CHECK(where("a") == "E");
}

TEST_CASE_METHOD(quorum_fixture, "a grant that comes after the majority's is one more that may be relied on") {
  const auto c = lock("a");
  const auto asked = clock.now();
  answer({0, 1, 2});
  REQUIRE(c.granted());
  clock.skip(20ms);
  answer({3, 4});
  CHECK(c.value()->of->valid_until() == asked + 30s - 300ms - 2ms);
  for (const std::size_t n : {0, 1}) nodes[n]->command({"DEL", "a"});
  advance(10s);
  answer_all();
  CHECK(c.value()->state() == lease_state::held);
  CHECK(heard() == "acquired");
}

TEST_CASE_METHOD(quorum_fixture, "what a slow primary says of an earlier attempt is no word on a later one") {
  for (auto& n : nodes) n->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = lock("a");
  clock.skip(2ms);
  answer({0, 1, 2, 3});
  advance(2ms);  // it waits for node 4 no longer
  const auto earlier = at[4]->open().at(0);
  const auto refusal = nodes[4]->run(at[4]->sent(earlier));
  answer({0, 1, 2, 3});
  advance(2ms);
  for (auto& n : nodes) n->command({"DEL", "a"});
  for (const std::size_t n : {0, 1, 2}) publish(n, "a");
  answer({0, 1, 2});
  REQUIRE(c.granted());
  at[4]->reply(earlier, refusal);
  run();
  unlock(c);
  answer_all();
  CHECK(where("a").empty());
}

TEST_CASE_METHOD(quorum_fixture, "a primary whose grant nobody has heard of is asked in its turn, and counts then") {
  const auto c = lock("a");
  answer({0, 1, 2});
  REQUIRE(c.granted());
  nodes[3]->run(at[3]->last());  // and its answer is lost
  advance(9s);
  for (const std::size_t n : {0, 1}) nodes[n]->command({"DEL", "a"});
  CHECK(at[3]->count() == 1);
  advance(1s);
  CHECK(at[3]->count() == 2);
  answer({2, 3});
  CHECK(c.value()->state() == lease_state::held);
  answer({0});
  CHECK(c.value()->state() == lease_state::held);
  answer({1});
  CHECK(c.value()->state() == lease_state::lost);  // two of five
}

TEST_CASE_METHOD(quorum_fixture, "a lock is not ours any more where too few that are asked at its release have it") {
  const auto c = lock("a");
  answer_all();
  for (const std::size_t n : {0, 1}) nodes[n]->command({"DEL", "a"});
  advance(10s);
  answer_all();
  REQUIRE(c.value()->state() == lease_state::held);
  nodes[2]->command({"DEL", "a"});
  const auto freed = unlock(c);
  answer({2});
  CHECK(freed.failed_with(errc::lost));
  answer_all();
  CHECK(where("a").empty());
}

TEST_CASE_METHOD(quorum_fixture, "an unlock that a majority has not confirmed is unconfirmed, and goes on") {
  const auto c = lock("a");
  answer_all();
  const auto freed = unlock(c);
  answer({0, 4});
  CHECK(freed.waits());
  advance(500ms);
  CHECK(freed.failed_with(errc::unconfirmed));
  answer_all();
  CHECK(where("a").empty());
  CHECK(heard() == "acquired release_failed released_late");
}

TEST_CASE_METHOD(quorum_fixture, "a waiter that a majority lets hear of nothing is told why by each of them") {
  for (auto& n : nodes) n->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = lock("a");
  answer_all();
  const std::string channel = "redisson_lock__channel:{a}";
  for (const std::size_t n : {0, 1}) at[n]->refuse(channel, errc::no_permission, "node" + std::to_string(n) + ": no");
  run();
  CHECK(c.waits());
  at[2]->refuse(channel, errc::no_permission, "node2: no");
  run();
  REQUIRE(c.failed_with(errc::no_permission));
  CHECK(c.detail().find("node0: no; node1: no; node2: no") != std::string::npos);
}

TEST_CASE_METHOD(quorum_fixture, "an unlock that a majority refuses tells why") {
  const auto c = granted("a");
  const auto freed = unlock(c);
  for (const std::size_t n : {0, 1, 2})
    at[n]->reply_last(replies::error("NOPERM this user has no permissions to run the 'hdel' command"));
  run();
  CHECK(freed.failed_with(errc::no_permission));
  answer({3, 4});
  CHECK(heard() == "acquired release_failed");
}

namespace {

struct asking_quorum : quorum_fixture {
  /// Asks for the holder of "a".
  call<std::optional<lock_holder>> ask_holder() {
    call<std::optional<lock_holder>> asked;
    locks->ask().holder(std::make_shared<const detail::lock_keys>(detail::red_plain_lock, "a"),
                        [asked](const auto& answer) { asked.answer(answer.failed, answer.value); });
    run();
    return asked;
  }
};

}  // namespace

TEST_CASE_METHOD(asking_quorum, "a question waits for the others as long again as the majority took") {
  for (auto& node : nodes) node->hold("a", "stranger:1", clock.now() + 20s);
  const auto asked = ask_holder();
  clock.skip(5ms);
  answer({0, 1, 2});
  CHECK(asked.waits());
  advance(5ms - 1ns);
  CHECK(asked.waits());
  advance(1ns);
  REQUIRE(asked.value());
  CHECK(asked.value()->id == "stranger:1");
}

TEST_CASE_METHOD(asking_quorum, "a question does not wait for a primary in an outage, though its vote would decide") {
  for (const std::size_t n : {0, 1}) nodes[n]->hold("a", "stranger:1", clock.now() + 20s);
  for (const std::size_t n : {2, 3}) nodes[n]->hold("a", "other:1", clock.now() + 20s);
  at[4]->link_down();
  const auto asked = ask_holder();
  clock.skip(1ms);
  answer({0, 1, 2, 3});
  advance(10ms);
  CHECK_FALSE(asked.waits());
}

TEST_CASE_METHOD(asking_quorum, "a question about the holder waits while the missing answers may give one a majority") {
  const auto asked = ask_holder();
  for (const std::size_t n : {0, 1, 3}) nodes[n]->hold("a", "stranger:1", clock.now() + 20s);
  nodes[2]->hold("a", "other:1", clock.now() + 20s);
  answer({0, 1, 2});
  advance(100ms);
  CHECK(asked.waits());
  answer({3});
  advance(200ms);
  REQUIRE(asked.value());
  CHECK(asked.value()->id == "stranger:1");
}

TEST_CASE_METHOD(asking_quorum,
                 "a question about the holder does not wait for a primary that can give nobody a majority") {
  const auto asked = ask_holder();
  for (const std::size_t n : {0, 1, 2, 3}) nodes[n]->hold("a", "holder:" + std::to_string(n), clock.now() + 20s);
  answer({0, 1, 2});
  advance(100ms);
  CHECK(asked.waits());
  answer({3});
  advance(200ms);
  CHECK_FALSE(asked.value());
}

TEST_CASE_METHOD(quorum_fixture, "a slow primary that has forgotten a script is not sent its text behind the release") {
  unlock(granted("a"));
  answer_all();
  nodes[4]->command({"SCRIPT", "FLUSH"});
  const auto c = lock("a");
  answer({0, 1, 2, 3});
  unlock(c);
  const auto open = at[4]->open();
  const auto unknown = nodes[4]->run(at[4]->sent(open.at(0)));
  nodes[4]->command({"SCRIPT", "LOAD", std::string(detail::lua::release.body)});
  const auto not_there = nodes[4]->run(at[4]->sent(open.at(1)));
  at[4]->reply(open[0], unknown);
  at[4]->reply(open[1], not_there);
  answer_all();
  CHECK(where("a").empty());
  CHECK(locks->idle());
}

TEST_CASE_METHOD(quorum_fixture, "who has divided the primaries with others does not wait for a dead one") {
  at[4]->link_down();
  for (const std::size_t n : {0, 1}) nodes[n]->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = try_lock("a");
  clock.skip(2ms);
  answer({0, 1, 2, 3});
  CHECK(c.waits());
  advance(2ms);
  CHECK(c.refused());
  answer_all();
  CHECK(where("a") == "AB");
}

TEST_CASE_METHOD(quorum_fixture, "a call that is given up is given back where it was asked, and nowhere else") {
  at[4]->link_down();
  const auto c = lock("a");
  answer({0});
  c.cancel();
  CHECK(at[4]->open().empty());
  answer_all();
  CHECK(where("a").empty());
  CHECK(locks->idle());
}

TEST_CASE_METHOD(quorum_fixture, "a waiter asks once more when the primaries have acknowledged, not once for each") {
  for (auto& n : nodes) n->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = lock("a");
  answer_all();
  answer_all();
  CHECK(at[0]->count() == 2);
  at[0]->link_down();
  at[0]->link_up();  // what it has published since is missed
  answer_all();
  CHECK(at[1]->count() == 3);
}

TEST_CASE_METHOD(quorum_fixture, "what the slower primaries tell of a release wakes nobody once more") {
  for (auto& n : nodes) n->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = lock("a");
  clock.skip(2ms);
  answer_all();
  answer_all();
  const auto tries = at[0]->count();
  for (const std::size_t n : {0, 1, 2, 3, 4}) publish(n, "a");
  answer_all();
  advance(4ms);
  CHECK(at[0]->count() == tries + 1);
  for (const std::size_t n : {0, 1, 2}) publish(n, "a");
  answer_all();
  publish(0, "a");  // somebody else has had it, and released it
  CHECK(at[0]->count() == tries + 2);
  advance(2ms);
  CHECK(at[0]->count() == tries + 3);
}

TEST_CASE_METHOD(quorum_fixture, "a waiter whom some primaries never acknowledge asks once more for all others") {
  for (const std::size_t n : {3, 4}) at[n]->link_down();
  for (auto& n : nodes) n->hold("a", "stranger:1", clock.now() + 20s);
  const auto c = lock("a");
  clock.skip(2ms);
  answer({0, 1, 2});
  advance(2ms);  // for the others
  CHECK(at[0]->count() == 1);
  advance(2ms);
  CHECK(at[0]->count() == 2);
}

TEST_CASE("no allocation that fails while primaries answer keeps a caller from its end") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  // g: grants, n: refuses, e: an error.
  for (const std::string_view answers : {"ggggg", "nnnnn", "ggnne", "geeee"}) {
    bool failed = true;
    for (std::size_t n = 0; failed; ++n) {
      INFO(answers << ", allocation " << n << " fails");
      const guarded_blocks guard;
      quorum_fixture f;
      f.settings.observer.reset();
      const auto c = f.try_lock("a");
      for (std::size_t i = 0; i < f.primaries; ++i) {
        if (answers[i] == 'n') f.nodes[i]->hold("a", "stranger:1", f.clock.now() + 20s);
        const auto open = f.at[i]->open().at(0);
        auto said = answers[i] == 'e' ? replies::error("MISCONF it cannot save, and says so at length")
                                      : f.nodes[i]->run(f.at[i]->sent(open));
        f.at[i]->reply(open, std::move(said));
      }
      {
        const failing_allocations here(n);
        try {
          f.run();
        } catch (const std::bad_alloc&) {
        }
        failed = here.happened();
      }
      f.run();
      if (c.waits()) c.cancel();
      if (c.granted()) f.unlock(c);
      f.answer_all();
      CHECK_FALSE(c.waits());
      f.locks->abandon();
      f.run();
      CHECK(f.locks->idle());
    }
  }
}

TEST_CASE_METHOD(quorum_fixture, "a script goes by its text to a primary that has not answered it on this connection") {
  const auto verb = [this](std::size_t n) { return at[n]->last().argv.at(0); };
  const auto lock_once = [&] {
    const auto c = lock("a");
    const auto said = verb(0) + " " + verb(1);
    answer_all();
    unlock(c);
    answer_all();
    return said;
  };
  CHECK(lock_once() == "EVAL EVAL");
  CHECK(lock_once() == "EVALSHA EVALSHA");
  at[0]->link_down();
  at[0]->link_up();
  run();
  CHECK(lock_once() == "EVAL EVALSHA");
  nodes[1]->command({"SCRIPT", "FLUSH"});
  CHECK(lock_once() == "EVALSHA EVALSHA");
  CHECK(lock_once() == "EVALSHA EVALSHA");
  CHECK(where("a").empty());
}
