// SPDX-License-Identifier: BSL-1.0
// One caller who wants any one of several locks.
#include <functional>

#include "support/skip.hpp"
#include "unit/sync/several/several_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct any_fixture : several_fixture {
  // The server's answers to the script.
  void grants_number(long long number) { answers(replies::integer(number)); }
  void all_busy() { grants_number(0); }
  /// A call that waits in the lines of these names, of which each is a stranger's.
  lock_call waiting_for(const std::vector<std::string>& names, asking wanted = {}) {
    const auto any = lock_any(names, wanted);
    all_busy();
    settle(names);
    return any;
  }
  void settle(const std::vector<std::string>& names) {
    for (const auto& name : names) {
      acknowledges(name);
      busy(10s);
    }
  }
  std::string name_of(const lock_call& any) const { return any.value()->of->keys()->name; }
  void let_go(const lock_call& any) {
    const auto unlocking = unlock(any);
    while (unlocking.waits()) frees();
  }
};

const std::vector<std::string> abc{"a", "b", "c"};

}  // namespace

TEST_CASE_METHOD(any_fixture, "any_of asks for all by one script, and holds the one that it names") {
  const auto any = lock_any(abc, by(alice));
  CHECK(server.count() == 1);
  CHECK(last_sent() == "acquire_any(a, b, c; 30000, #1)");
  grants_number(2);
  CHECK(name_of(any) == "b");
  CHECK(any.value()->state() == lease_state::held);
  CHECK(std::string_view(any.value()->of->field().to_text()) == uuid + ":1");
  CHECK(any.value()->of->owner == alice);
  CHECK(server.count() == 1);
  advance(10s);
  CHECK(last_sent() == "renew(b; 30000, #1)");
  confirms();
  let_go(any);
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "any_of begins with a random one, so that callers spread") {
  random.number = 5;  // of three: the third
  lock_any(abc);
  CHECK(wire(0).starts_with("acquire_any(c, a, b; "));
}

TEST_CASE_METHOD(any_fixture, "any_of fenced locks has the token of the one that it was granted") {
  const auto any = lock_any({"a", "b"}, fenced());
  CHECK(last_sent() == "acquire_any_fenced(a, b, redisson_lock_token:{a}, redisson_lock_token:{b}; 30000, #1)");
  answers(replies::integers({2, 7}));
  CHECK(name_of(any) == "b");
  CHECK(any.value()->of->token() == 7);
}

TEST_CASE_METHOD(any_fixture, "any_of simple locks asks by their script") {
  const auto any = lock_any({"a", "b"}, simple());
  CHECK(last_sent() == "simple_acquire_any(a, b; 30000, #1)");
  grants_number(1);
  CHECK(name_of(any) == "a");
}

TEST_CASE_METHOD(any_fixture, "any_of simple locks that were found taken asks no SET before the script") {
  const auto any = lock_any({"a", "b"}, simple());
  all_busy();
  server.acknowledge("holdfast_simple:{a}");
  run();
  CHECK(last_sent().starts_with("simple_acquire(a; "));
  grants();
  CHECK(name_of(any) == "a");
}

TEST_CASE_METHOD(any_fixture, "an answer that names none of those that were asked for is a protocol error") {
  for (const auto& strange : {replies::integer(3), replies::integer(-1), replies::nil(), replies::integers({1, 7})}) {
    const auto any = lock_any({"a", "b"});
    answers(strange);
    CHECK(any.failed_with(errc::protocol_error));
    CHECK(sent("release") % 2 == 0);  // it may have been granted
    while (in_flight() > 0) not_yours();
  }
  for (const auto& strange : {replies::integer(1), replies::integers({3, 7}), replies::integers({0, 7})}) {
    const auto any = lock_any({"a", "b"}, fenced());
    answers(strange);
    CHECK(any.failed_with(errc::protocol_error));
    while (in_flight() > 0) not_yours();
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "where all are taken any_of subscribes to each, and looks once more when that is heard") {
  const auto any = lock_any(abc);
  all_busy();
  CHECK(server.count() == 1);
  for (const auto& name : abc) CHECK(subscribers(name) == 1);
  settle(abc);
  CHECK(any.waits());
  CHECK(sent("acquire") == 3);
  CHECK(in_flight() == 0);
}

TEST_CASE_METHOD(any_fixture, "any_of has the lock that is released first, and waits for no other any more") {
  const auto any = waiting_for(abc);
  publishes("b");
  CHECK(last_sent().starts_with("acquire(b; "));
  grants();
  CHECK(name_of(any) == "b");
  for (const auto& name : abc) CHECK(subscribers(name) == 0);
  CHECK(in_flight() == 0);
  let_go(any);
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "a second lock that is granted in the same moment is given back") {
  const auto any = waiting_for(abc);
  publishes("b");
  publishes("c");
  CHECK(in_flight() == 2);
  const auto of_c = server.open().back();
  grants();
  CHECK(name_of(any) == "b");
  CHECK(last_sent().starts_with("release(c; "));
  server.reply(of_c, replies::nil());
  run();
  CHECK(any.granted());
  frees();
  let_go(any);
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "any_of does not ask for what this client holds or waits for") {
  const auto held = hold("a");
  const auto waits = lock("b");
  busy(10s);
  const auto any = lock_any(abc);
  CHECK(last_sent().starts_with("acquire_any(c; "));
  grants_number(1);
  CHECK(name_of(any) == "c");
  const auto before = server.count();
  CHECK(try_lock_any({"a", "b"}).refused());
  CHECK(server.count() == before);
}

TEST_CASE_METHOD(any_fixture, "a lock that this client gives back is any_of's") {
  const auto held = hold("a");
  const auto any = lock_any({"a"});
  CHECK(server.count() == 1);
  acknowledges("a");
  const auto unlocking = unlock(held);
  frees();
  CHECK(unlocking.succeeded());
  CHECK(last_sent().starts_with("acquire(a; "));
  grants();
  CHECK(name_of(any) == "a");
}

TEST_CASE_METHOD(any_fixture, "any_of waits behind those who came before it, and before those who come after it") {
  const auto before = lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  const auto any = lock_any({"a"});
  const auto after = lock("a");
  publishes("a");
  grants();
  REQUIRE(before.granted());
  CHECK(any.waits());
  unlock(before);
  frees();
  grants();
  REQUIRE(any.granted());
  CHECK(after.waits());
  unlock(any);
  frees();
  grants();
  CHECK(after.granted());
}

TEST_CASE_METHOD(any_fixture, "any_of never re-enters: an owner that holds one gets another, or waits") {
  const auto first = lock_any({"a", "b"}, by(alice));
  grants_number(1);
  const auto second = lock_any({"a", "b"}, by(alice));
  CHECK(last_sent().starts_with("acquire_any(b; "));
  grants_number(1);
  CHECK(name_of(second) == "b");
  CHECK(try_lock_any({"a", "b"}, by(alice)).refused());
  const auto third = lock_any({"a", "b"}, by(alice));
  CHECK(third.waits());
  unlock(second);
  frees();
  CHECK(last_sent().starts_with("acquire(b; "));
  grants();
  CHECK(name_of(third) == "b");
  CHECK(third.value()->of != first.value()->of);
  CHECK(first.value()->of->count() == 1);
}

TEST_CASE_METHOD(any_fixture,
                 "what any_of was granted is re-entered by its owner, also by a lock() that waited already") {
  const auto any = waiting_for({"a"}, by(alice));
  const auto nested = lock("a", by(alice));
  const auto other = lock_any({"a"}, by(alice));
  publishes("a");
  grants();
  REQUIRE(any.granted());
  reenters();
  CHECK(nested.granted());
  CHECK(nested.value()->of == any.value()->of);
  CHECK(other.waits());
  CHECK(in_flight() == 0);
}

TEST_CASE_METHOD(any_fixture, "a lock() of the same owner that began meanwhile re-enters what any_of is granted") {
  const auto any = lock_any({"a", "b"}, by(alice));
  const auto beside = lock("a", by(bob));
  const auto nested = lock("a", by(alice));
  grants_number(1);
  REQUIRE(name_of(any) == "a");
  busy(30s);  // to bob, who asked when it was granted already
  reenters();
  CHECK(nested.granted());
  CHECK(beside.waits());
}

TEST_CASE_METHOD(any_fixture, "a lock() of the same owner that asked right behind re-enters what any_of is granted") {
  const auto any = lock_any({"a", "b"}, by(alice));
  const auto nested = lock("a", by(alice)), after = lock("a", by(bob));
  grants_number(1);
  REQUIRE(name_of(any) == "a");
  CHECK(nested.waits());
  busy(30s);
  reenters();
  CHECK(nested.granted());
  CHECK(nested.value()->of == any.value()->of);
  CHECK(after.waits());
  unlock(nested);
  reenters();
  unlock(any);
  frees();
  grants();
  CHECK(after.granted());
}

TEST_CASE_METHOD(any_fixture, "a try that finds all taken is refused, and one that finds one free has it") {
  const auto taken = try_lock_any(abc);
  CHECK(unanswered().timeout == 500ms);
  CHECK_FALSE(unanswered().waits_for_reply);
  all_busy();
  CHECK(taken.refused());
  const auto any = try_lock_any(abc);
  grants_number(3);
  CHECK(name_of(any) == "c");
  CHECK(heard() == "not_acquired acquired");
}

TEST_CASE_METHOD(any_fixture,
                 "a try that is not answered is unreachable, and gives back what it may have been granted") {
  const auto any = try_lock_any({"a", "b"});
  fails(errc::unconfirmed);
  CHECK(any.failed_with(errc::unreachable));
  CHECK(any.detail() == "any of 2 locks: fake:6379");
  CHECK(wire(1).starts_with("release(a; "));
  CHECK(wire(2).starts_with("release(b; "));
  not_yours();
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture,
                 "an unanswered script is not repeated: what it may have taken is freed before others ask") {
  const auto any = lock_any({"a", "b"});
  fails(errc::unconfirmed);
  CHECK(any.waits());
  CHECK(sent("release") == 2);
  CHECK(sent("acquire") == 0);
  frees();
  CHECK(sent("acquire") == 0);
  not_yours();
  CHECK(sent("acquire") == 2);
  grants();
  CHECK(name_of(any) == "a");
  CHECK(last_sent().starts_with("release(b; "));
}

TEST_CASE_METHOD(any_fixture, "a script that was not written is no reason to give anything back") {
  const auto any = lock_any({"a", "b"});
  fails(errc::unreachable);
  CHECK(sent("release") == 0);
  CHECK(sent("acquire") == 2);
  grants();
  CHECK(any.granted());
}

TEST_CASE_METHOD(any_fixture, "a server that refuses for now is asked again by each line") {
  const auto any = lock_any({"a", "b"});
  errs("OOM command not allowed when used memory > 'maxmemory'.");
  CHECK(any.waits());
  CHECK(sent("acquire") == 2);
}

TEST_CASE_METHOD(any_fixture, "a refusal that does not mend is told at once") {
  const auto any = lock_any({"a", "b"});
  errs("MOVED 1 127.0.0.1:7000");
  CHECK(any.failed_with(errc::not_primary));
  CHECK(any.detail().starts_with("any of 2 locks: "));
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "one key that may not be touched refuses the script, and hinders no other in its line") {
  const auto any = lock_any({"a", "secret"});
  const auto once = try_lock_any({"x", "secret"});
  errs("NOPERM No permissions to access a key");
  errs("NOPERM No permissions to access a key");
  CHECK(once.failed_with(errc::no_permission));
  CHECK(any.waits());
  while (any.waits() && in_flight() > 0)
    server.sent(server.open().front()).key == "a" ? grants() : errs("NOPERM No permissions to access a key");
  CHECK(name_of(any) == "a");
}

TEST_CASE_METHOD(any_fixture,
                 "a lock() of the same owner re-enters what any_of was granted, however its own attempt ends") {
  const auto silent = [this] { fails(errc::unconfirmed); };
  const auto full = [this] { errs("OOM command not allowed when used memory > 'maxmemory'."); };
  for (const auto& ends : std::vector<std::function<void()>>{silent, full}) {
    const auto before = sent("set_hold_count");
    const auto any = lock_any({"a", "b"}, by(alice));
    const auto nested = lock("a", by(alice));
    grants_number(1);
    REQUIRE(name_of(any) == "a");
    ends();
    advance(5s);
    CHECK(sent("set_hold_count") == before + 1);
    nested.cancel();
    unlock_all();
    while (in_flight() > 0) frees();
    advance(1min);
    while (in_flight() > 0) frees();
  }
}

TEST_CASE_METHOD(any_fixture, "a lock() of the same owner that parked before any_of was granted re-enters") {
  const auto any = lock_any({"a", "b"}, by(alice));
  const auto nested = lock("a", by(alice));
  errs("NOSCRIPT No matching script. Please use EVAL.");
  busy(10s);  // nested: a stranger's, until a moment later
  grants_number(1);
  REQUIRE(any.granted());
  CHECK(sent("set_hold_count") == 1);
}

TEST_CASE_METHOD(any_fixture, "a lock that is only being given back is tried") {
  const auto left = lock("a");
  left.cancel();
  const auto before = server.count();
  const auto tried = try_lock_any({"a"});
  CHECK(tried.waits());
  CHECK(server.count() == before + 1);
}

TEST_CASE("a lock() that finds no memory leaves its name to any_of") {
  for (const bool bound : {false, true}) {
    INFO("bound: " << bound);
    const auto ask = [bound](any_fixture& fixture, auto) {
      bound ? fixture.lock("a", by(fixture.alice)) : fixture.lock("a");
    };
    starve<any_fixture>(prepare_nothing, ask, [](any_fixture& fixture, auto) {
      fixture.play_all();
      fixture.unlock_all();
      fixture.advance(40s);
      const auto tried = fixture.try_lock_any({"a"});
      fixture.run();
      CHECK(tried.granted());
      fixture.unlock_all();
      fixture.run();
      CHECK(fixture.locks->idle());
    });
  }
}

TEST_CASE("a release that finds no memory to start keeps no client from closing") {
  const auto ask = [](any_fixture& fixture) {
    const auto any = fixture.lock_any({"a", "b"});
    fixture.run();
    return any;
  };
  const auto cancel = [](any_fixture&, const lock_call& any) { any.cancel(); };
  starve<any_fixture>(ask, cancel, [](any_fixture& fixture, const lock_call&) {
    fixture.run();
    for (const auto command : fixture.server.open())
      if (fixture.server.sent(command).written) fixture.server.reply(command, replies::nil());
    fixture.run();
    fixture.advance(2min);
    CHECK(fixture.locks->idle());
    CHECK(fixture.close(10s).succeeded());
  });
}

TEST_CASE_METHOD(any_fixture, "a server that does not know the script gets its text") {
  const auto any = lock_any({"a", "b"});
  errs("NOSCRIPT No matching script. Please use EVAL.");
  CHECK(unanswered().argv[0] == "EVAL");
  grants_number(2);
  CHECK(name_of(any) == "b");
}

TEST_CASE_METHOD(any_fixture, "a grant that came too late to be of use is given back") {
  const auto any = lock_any({"a", "b"}, with({.ttl = 1s}));
  advance(970ms);
  grants_number(2);
  CHECK(any.waits());
  CHECK(last_sent().starts_with("release(b; "));
  CHECK(sent("release") == 1);
  frees();
  grants();
  CHECK(name_of(any) == "a");
}

TEST_CASE_METHOD(any_fixture, "a lock that cannot be had does not hinder the others") {
  const auto any = lock_any({"a", "b"});
  all_busy();
  acknowledges("a");
  answers(replies::integer(-1));  // a key without TTL
  CHECK(any.waits());
  acknowledges("b");
  grants();
  CHECK(name_of(any) == "b");
  CHECK(heard() == "acquired");
}

TEST_CASE_METHOD(any_fixture, "when each has failed, the first failure is told, and of which lock it is") {
  const auto any = lock_any({"a", "b"});
  all_busy();
  acknowledges("a");
  errs("WRONGTYPE Operation against a key holding the wrong kind of value");
  acknowledges("b");
  answers(replies::integer(-1));
  CHECK(any.failed_with(errc::corrupt_lock));
  CHECK(any.detail().starts_with("lock 'a': "));
  CHECK(heard() == "acquire_failed");
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "what fails for all locks of a server ends any_of at once") {
  const auto any = waiting_for(abc);
  publishes("b");
  errs("READONLY You can't write against a read only replica.");
  CHECK(any.failed_with(errc::not_primary));
  CHECK(heard() == "acquire_failed");
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "a bounded wait for any_of ends at its deadline") {
  const auto any = try_lock_any_for(abc, 1s);
  all_busy();
  settle(abc);
  advance(999ms);
  CHECK(any.waits());
  advance(1ms);
  CHECK(any.refused());
  CHECK(heard() == "not_acquired");
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "a bounded wait whose script is not answered is unreachable, and gives all back") {
  const auto any = try_lock_any_for({"a", "b"}, 700ms);
  advance(700ms);
  CHECK(any.failed_with(errc::unreachable));
  CHECK(sent("release") == 2);
  grants_number(1);
  frees();
  not_yours();
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "a bounded wait for any_of is empty where Redis has answered others since it asked") {
  check_result_by_answers_to_others(try_lock_any_for({"a", "b"}, 100ms));
}

TEST_CASE_METHOD(any_fixture, "cancelled while it asks, any_of gives back what it may be granted") {
  const auto any = lock_any({"a", "b"});
  any.cancel();
  CHECK(any.error() == boost::asio::error::operation_aborted);
  CHECK(sent("release") == 2);
  CHECK(heard() == "acquire_cancelled");
  grants_number(1);
  frees();
  not_yours();
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "cancelled before it was written, any_of has nothing to give back") {
  link_down();
  check_cancelled_without_release(lock_any({"a", "b"}));
}

TEST_CASE_METHOD(any_fixture, "cancelled while it waits, any_of leaves each line") {
  const auto any = waiting_for(abc);
  publishes("b");  // one of them asks
  any.cancel();
  CHECK(any.error() == boost::asio::error::operation_aborted);
  CHECK(sent("release") == 1);
  grants();
  frees();
  CHECK(heard() == "acquire_cancelled released_late");
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "a cancellation after its end changes nothing") {
  const auto any = lock_any({"a", "b"});
  grants_number(1);
  any.cancel();
  CHECK(any.value()->state() == lease_state::held);
}

TEST_CASE_METHOD(any_fixture,
                 "a client that closes answers any_of, wherever it waits, and gives back what it has asked for") {
  const auto waits = waiting_for({"c", "d"});
  const auto asks = lock_any({"a", "b"});
  const auto closed = close();
  CHECK(asks.failed_with(errc::shutting_down));
  CHECK(waits.failed_with(errc::shutting_down));
  CHECK(sent("release") == 2);
  while (in_flight() > 0) not_yours();
  CHECK(closed.succeeded());
  CHECK(lock_any({"a"}).failed_with(errc::shutting_down));
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_fixture, "while a client drains, any_of is for owners that hold") {
  const auto held = hold("h", by(alice));
  const auto hers = lock_any({"a", "b"}, by(alice)), his = lock_any({"a", "b"}, by(bob));
  verb_call drained;
  locks->drain(10s, [drained] { drained.answer({}); });
  run();
  CHECK(his.failed_with(errc::shutting_down));
  CHECK(lock_any({"a"}, by(bob)).failed_with(errc::shutting_down));
  check_drain_ends_with(held, hers, drained);
}

TEST_CASE_METHOD(any_fixture, "while a client drains, what any_of is granted to an owner that holds lets it hold on") {
  const auto held = hold("h", by(alice));
  const auto any = lock_any({"a", "b"}, by(alice));
  verb_call drained;
  locks->drain(10s, [drained] { drained.answer({}); });
  grants_number(1);
  REQUIRE(any.granted());
  let_go(held);
  advance(0ns);
  CHECK(drained.waits());
  let_go(any);
  advance(0ns);
  CHECK(drained.succeeded());
}

TEST_CASE_METHOD(any_fixture, "an engine that is destroyed answers nobody, wherever any_of waits") {
  const auto waits = waiting_for({"c", "d"});
  const auto asks = lock_any({"a", "b"});
  locks.reset();
  CHECK(asks.waits());
  CHECK(waits.waits());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(any_fixture, "any_of tells the observer once, of all that it waited for") {
  const auto any = lock_any(abc, by(alice));
  advance(5ms);
  all_busy();
  settle(abc);
  advance(5ms);
  publishes("b");
  grants();
  REQUIRE(any.granted());
  CHECK(heard() == "acquired");
  CHECK(last_event().name == "b");
  CHECK(last_event().waited == 10ms);
  CHECK(last_event().owner == alice);
  CHECK(last_event().detail == "any of 3 locks");
  CHECK(try_lock_any({"b"}).refused());
  CHECK(heard() == "not_acquired");
  CHECK(last_event().name.empty());
}

TEST_CASE("no allocation that fails where any_of asks, is granted, waits or leaves leaves anything behind") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto runs = starve_each_step<any_fixture, lock_call>(
      [](any_fixture& fixture) {
        return fixture.lock_any({"a", "b"});
      },
      replies::integer(2), replies::integer(0),
      [](any_fixture& fixture, lock_call&) {
        fixture.all_busy();
        fixture.settle({"a", "b"});
        fixture.publishes("a");
      });
  for (const auto of_step : runs) CHECK(of_step > 2);
}

// ---- groups of keys

namespace {

/// The first letter is the group of a name.
struct any_of_groups : any_fixture {
  any_of_groups() {
    server.grouped_by = [](std::string_view key) { return static_cast<std::uint32_t>(key.front()); };
  }
  const std::vector<std::string> names{"a1", "b1", "a2", "c1"};
};

}  // namespace

TEST_CASE_METHOD(any_of_groups, "any_of asks each group by itself, one after the other") {
  const auto any = lock_any(names);
  CHECK(last_sent() == "acquire_any(a1, a2; 30000, #1)");
  all_busy();
  CHECK(last_sent() == "acquire_any(b1; 30000, #2)");
  CHECK(server.count() == 2);
  grants_number(1);
  CHECK(name_of(any) == "b1");
  CHECK(server.count() == 2);
  let_go(any);
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_of_groups, "any_of begins with the group of a random one") {
  random.number = 1;
  lock_any(names);
  CHECK(wire(0).starts_with("acquire_any(b1; "));
  all_busy();
  CHECK(wire(1).starts_with("acquire_any(a2, a1; "));
  all_busy();
  CHECK(wire(2).starts_with("acquire_any(c1; "));
}

TEST_CASE_METHOD(any_of_groups, "any_of asks those last whose server cannot be reached, and waits for none of them") {
  server.place("a1", 1);
  server.place("a2", 1);
  server.link_down(1);
  const auto any = lock_any(names);
  CHECK(last_sent() == "acquire_any(b1; 30000, #1)");
  all_busy();
  CHECK(last_sent() == "acquire_any(c1; 30000, #2)");
  all_busy();
  CHECK(server.last().key == "a1");
  CHECK_FALSE(server.last().waits_for_reply);
  CHECK(subscribers("b1") == 0);
  advance(1s);
  CHECK(subscribers("b1") == 1);
  CHECK(subscribers("c1") == 1);
  CHECK(any.waits());
}

TEST_CASE_METHOD(any_of_groups, "any_of waits in all lines when each group was asked") {
  const auto any = lock_any(names);
  for (int i = 0; i < 3; ++i) {
    CHECK(subscribers("a1") == 0);
    all_busy();
  }
  CHECK(server.count() == 3);
  settle({"a1", "a2", "b1", "c1"});
  publishes("c1");
  grants();
  CHECK(name_of(any) == "c1");
  let_go(any);
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_of_groups, "any_of of which a group is not answered has one of another") {
  const auto any = lock_any(names);
  fails(errc::unconfirmed);
  CHECK(sent("release") == 2);  // it may have been granted
  REQUIRE(server.last().keys() == std::vector<std::string>{"b1"});
  server.reply_last(replies::integer(1));
  run();
  CHECK(name_of(any) == "b1");
  frees();
  frees();
  let_go(any);
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_of_groups, "lines are joined when what was not answered is given back, and each group was asked") {
  const auto any = lock_any(names);
  fails(errc::unconfirmed);
  for (int i = 0; i < 2; ++i) {
    server.reply(server.open().back(), replies::integer(0));
    run();
  }
  CHECK(subscribers("b1") == 0);
  REQUIRE(in_flight() == 2);
  not_yours();
  not_yours();
  CHECK(subscribers("b1") == 1);
  CHECK(sent("acquire") == 2);  // a1 and a2, of which nobody knows
  any.cancel();
}

TEST_CASE_METHOD(any_of_groups, "any_of whose time ends before a silent group has its release tells of that one") {
  for (const auto* name : {"a1", "a2"}) lives_on(1, name);
  const auto any = try_lock_any_for(names, 100ms);
  link_down(1);
  for (int i = 0; i < 2; ++i) {
    server.reply_last(replies::integer(0));
    run();
  }
  advance(100ms);
  CHECK(any.failed_with(errc::unreachable));
  CHECK(any.detail() == "any of 4 locks: fake:6379: no answer in time");
  link_up(1);
  while (in_flight() > 0) not_yours();
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_of_groups, "a try for any_of ends with the last group") {
  const auto any = try_lock_any(names);
  all_busy();
  SECTION("busy") {
    all_busy();
    all_busy();
    CHECK(any.refused());
  }
  SECTION("of which one fails: the others are busy") {
    fails(errc::unreachable);
    all_busy();
    CHECK(any.refused());
  }
  SECTION("which is free") {
    fails(errc::unreachable);
    grants_number(1);
    CHECK(name_of(any) == "c1");
    let_go(any);
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_of_groups, "a try for any_of of which each group fails tells the first failure") {
  const auto any = try_lock_any(names);
  fails(errc::unreachable);
  fails(errc::unreachable);
  fails(errc::unreachable);
  CHECK(any.failed_with(errc::unreachable));
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_of_groups, "all groups of a try for any_of share one command's time") {
  const auto any = try_lock_any(names);
  CHECK(server.last().timeout == 500ms);
  advance(200ms);
  all_busy();
  CHECK(server.last().timeout == 300ms);
  clock.skip(300ms);
  server.reply_last(replies::integer(0));
  run();
  CHECK(any.refused());
  CHECK(server.count() == 2);
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_of_groups, "any_of that is cancelled between two groups leaves nothing") {
  const auto any = lock_any(names);
  all_busy();
  any.cancel();
  CHECK(any.error() == boost::asio::error::operation_aborted);
  server.reply_last(replies::integer(0));
  run();
  while (in_flight() > 0) not_yours();
  check_nothing_is_left();
}

TEST_CASE_METHOD(any_of_groups, "any_of does not pass whoever has begun to wait meanwhile") {
  lock_any(names);
  lock("b1");
  server.reply(0, replies::integer(0));
  run();
  CHECK(server.last().keys() == std::vector<std::string>{"c1"});
}
