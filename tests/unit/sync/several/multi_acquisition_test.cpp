// SPDX-License-Identifier: BSL-1.0
// One caller who wants several locks, all or none.
#include <numeric>

#include "support/skip.hpp"
#include "sync/several/multi_acquisition.hpp"
#include "unit/sync/several/several_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct multi_fixture : several_fixture {
  /// The server's answer to the script: the n-th, from 1, is a stranger's.
  void busy_at(long long place, milliseconds holder_ttl = 10s) {
    answers(replies::integers({place, holder_ttl.count()}));
  }
  void let_go(const lock_call& all) {
    unlock(all);
    while (in_flight() > 0) frees();
  }
  void let_go(const multi_call& all) {
    unlock(all);
    while (in_flight() > 0) frees();
  }
  void check_all_held(const multi_call& all) {
    REQUIRE(all.granted());
    for (const auto& lease : all.value()) CHECK(lease->state() == lease_state::held);
  }
};

const std::vector<std::string> ab{"a", "b"}, abc{"a", "b", "c"};

}  // namespace

TEST_CASE_METHOD(multi_fixture, "several locks are taken by one script, each with a field of its own") {
  const auto all = lock_all(abc, by(alice));
  CHECK(server.count() == 1);
  CHECK(last_sent() == "acquire_all(a, b, c; 30000, #1, #2, #3)");
  grants();
  check_all_held(all);
  REQUIRE(all.value().size() == 3);
  for (std::size_t n = 0; n < 3; ++n) {
    CHECK(all.value()[n]->of->keys()->name == abc[n]);
    CHECK(std::string_view(all.value()[n]->of->field().to_text()) == uuid + ":" + std::to_string(n + 1));
    CHECK(all.value()[n]->of->owner == alice);
  }
  advance(10s);
  CHECK(last_sent() == "renew(a, b, c; 30000, 30000, 30000, #1, #2, #3)");
  confirms();
  let_go(all);
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "several fenced locks have a token each") {
  const auto all = lock_all(ab, fenced());
  CHECK(last_sent() == "acquire_all_fenced(a, b, redisson_lock_token:{a}, redisson_lock_token:{b}; 30000, #1, #2)");
  answers(replies::integers({0, 7, 9}));
  check_all_held(all);
  CHECK(all.value()[0]->of->token() == 7);
  CHECK(all.value()[1]->of->token() == 9);
}

TEST_CASE_METHOD(multi_fixture, "several simple locks are taken by their script, also at first") {
  const auto all = lock_all(ab, simple());
  CHECK(last_sent() == "simple_acquire_all(a, b; 30000, #1, #2)");
  grants();
  check_all_held(all);
}

TEST_CASE_METHOD(multi_fixture, "each lock that is granted tells the observer, and a call that fails tells it once") {
  const auto all = lock_all(ab, by(alice));
  advance(5ms);
  grants();
  REQUIRE(all.granted());
  CHECK(heard() == "acquired acquired");
  CHECK(last_event().name == "b");
  CHECK(last_event().waited == 5ms);
  CHECK(last_event().owner == alice);
  const auto refused = try_lock_all(ab);
  busy_at(1);
  CHECK(refused.refused());
  CHECK(heard() == "not_acquired");
  CHECK(last_event().name.empty());
  CHECK(last_event().detail == "all of 2 locks");
}

TEST_CASE_METHOD(multi_fixture, "where one is a stranger's it waits in the line of that one, and asks for all again") {
  const auto all = lock_all(abc);
  busy_at(2);
  CHECK(all.waits());
  CHECK(subscribers("a") == 0);
  CHECK(subscribers("b") == 1);
  CHECK(subscribers("c") == 0);
  acknowledges("b");
  CHECK(last_sent() == "acquire_all(a, b, c; 30000, #1, #2, #4)");
  busy_at(2);
  publishes("b");
  CHECK(sent("acquire_all") == 3);
  grants();
  check_all_held(all);
  CHECK(subscribers("b") == 0);
  let_go(all);
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "it takes its turn in one line after the other, in their order") {
  const auto a = hold("a"), b = hold("b");
  const auto all = lock_all(ab);
  CHECK(server.count() == 2);
  CHECK(subscribers("a") == 1);
  CHECK(subscribers("b") == 0);  // it does not wait there yet
  unlock(b);
  frees();
  CHECK(sent("acquire_all") == 0);
  unlock(a);
  frees();
  CHECK(sent("acquire_all") == 1);
  grants();
  check_all_held(all);
}

TEST_CASE_METHOD(multi_fixture, "while it waits for a later one, nobody of this process passes it at an earlier one") {
  const auto b = hold("b");
  const auto all = lock_all(ab);
  const auto after = lock("a");
  CHECK(try_lock("a").refused());
  CHECK(sent("acquire") == 1);  // that of b
  unlock(b);
  frees();
  CHECK(last_sent().starts_with("acquire_all(a, b; "));
  grants();
  check_all_held(all);
  CHECK(after.waits());
  unlock(all);
  frees();
  frees();
  grants();
  CHECK(after.granted());
}

TEST_CASE_METHOD(multi_fixture, "who holds an earlier one and waits for a later one has that, and both end") {
  const auto a = hold("a", by(alice));
  const auto all = lock_all(ab, by(bob));
  const auto b = lock("b", by(alice));
  CHECK(last_sent().starts_with("acquire(b; "));
  grants();
  REQUIRE(b.granted());
  unlock(b);
  frees();
  unlock(a);
  frees();
  CHECK(last_sent().starts_with("acquire_all(a, b; "));
  grants();
  check_all_held(all);
}

TEST_CASE_METHOD(multi_fixture, "who is busy at an earlier one does not stand in the line of a later one") {
  const auto all = lock_all(ab);
  busy_at(1);
  const auto b = lock("b");
  CHECK(last_sent().starts_with("acquire(b; "));
  grants();
  CHECK(b.granted());
  CHECK(all.waits());
}

TEST_CASE_METHOD(multi_fixture, "it is not starved by endless callers of this process for one of them each") {
  std::vector<lock_call> for_a{hold("a")}, for_b{hold("b")};
  const auto all = lock_all(ab);
  for (int n = 0; n < 3; ++n) {
    for_a.push_back(lock("a"));
    for_b.push_back(lock("b"));
  }
  play();
  for (int round = 0; round < 8 && all.waits(); ++round) {
    for (auto* calls : {&for_a, &for_b}) {
      const auto name = calls == &for_a ? "a" : "b";
      for (std::size_t n = 0; n < calls->size(); ++n) {
        const auto one = (*calls)[n];
        if (!one.granted() || one.value()->released) continue;
        unlock(one);
        run();
        calls->push_back(lock(name));
      }
    }
    play_all();
  }
  check_all_held(all);
}

TEST_CASE_METHOD(multi_fixture, "two calls for the same locks have them one after the other") {
  play();
  const auto first = lock_all(ab);
  run();
  const auto second = lock_all(ab), third = lock_all({"b"});
  run();
  check_all_held(first);
  CHECK(second.waits());
  unlock(first);
  run();
  check_all_held(third);  // it stood in that line first
  CHECK(second.waits());
  unlock(third);
  run();
  check_all_held(second);
  unlock(second);
  run();
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "what its owner holds is re-entered, and only the others are asked for") {
  const auto b = hold("b", by(alice));
  const auto all = lock_all(abc, by(alice));
  CHECK(wire(1) == "set_hold_count(b; 30000, #1, 2)");
  reenters();
  CHECK(wire(2) == "acquire_all(a, c; 30000, #2, #3)");
  grants();
  check_all_held(all);
  CHECK(all.value()[1]->of == b.value()->of);
  CHECK(heard() == "acquired reentered acquired acquired");
  let_go(all);
  CHECK(b.value()->state() == lease_state::held);
}

TEST_CASE_METHOD(multi_fixture,
                 "it tells the observer when its owner holds one that comes after one that it waits for") {
  const auto b = hold("b", by(alice));
  const auto all = lock_all(ab, by(alice));
  reenters();
  CHECK(heard() == "acquired reentered");
  busy_at(1);
  CHECK(heard() == "lock_order_broken");
  CHECK(last_event().name == "a");
  CHECK(last_event().owner == alice);
  acknowledges("a");
  busy_at(1);
  CHECK(heard().empty());  // once
  CHECK(all.waits());
}

TEST_CASE_METHOD(multi_fixture, "an owner that holds the first and waits for the next keeps the order") {
  const auto a = hold("a", by(alice));
  const auto all = lock_all(ab, by(alice));
  reenters();
  busy_at(1);
  CHECK(heard() == "acquired reentered");
  acknowledges("b");
  grants();
  check_all_held(all);
}

TEST_CASE_METHOD(multi_fixture, "a simple lock that its owner holds fails the call, and nothing is taken") {
  const auto b = lock("b", simple(alice));
  answers(replies::ok());
  const auto all = lock_all(abc, simple(alice));
  CHECK(all.failed_with(errc::already_held));
  CHECK(all.detail().starts_with("lock 'b': "));
  CHECK(server.count() == 1);
  CHECK(heard() == "acquired acquire_failed");
}

TEST_CASE_METHOD(multi_fixture, "a re-entered hold that is lost while others are waited for fails the call") {
  const auto a = hold("a", with({.ttl = 1s}));
  const auto all = lock_all(ab, by(a.value()->of->owner));
  reenters();
  busy_at(1, 30s);
  advance(40s);
  while (all.waits() && in_flight() > 0) {
    const auto script = last_sent();
    if (script.starts_with("acquire_all"))
      grants();
    else
      not_yours();
  }
  CHECK(all.failed_with(errc::lost));
}

TEST_CASE_METHOD(multi_fixture, "a parallel call of the same owner re-enters what the first was granted") {
  play();
  const auto first = lock_all(ab, by(alice)), second = lock_all(ab, by(alice));
  run();
  check_all_held(first);
  check_all_held(second);
  CHECK(first.value()[0]->of == second.value()[0]->of);
  CHECK(first.value()[0]->of->count() == 2);
  unlock(first);
  unlock(second);
  run();
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "a try has all at once, or none") {
  const auto all = try_lock_all(ab);
  CHECK(unanswered().timeout == 500ms);
  CHECK_FALSE(unanswered().waits_for_reply);
  busy_at(2);
  CHECK(all.refused());
  CHECK(server.count() == 1);
  check_nothing_is_left();
  const auto again = try_lock_all(ab);
  grants();
  check_all_held(again);
  const auto waits = lock("b");
  const auto behind = try_lock_all(ab);
  CHECK(behind.refused());  // somebody waits for b here
}

TEST_CASE_METHOD(multi_fixture, "a try that is not answered is unreachable, and gives back what it may have") {
  const auto all = try_lock_all(ab);
  fails(errc::unconfirmed);
  CHECK(all.failed_with(errc::unreachable));
  CHECK(all.detail() == "lock 'a': fake:6379");
  CHECK(sent("release") == 2);
  not_yours();
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture,
                 "an unanswered script is sent once more with the same fields when its connection has ended") {
  const auto all = lock_all(ab);
  fails(errc::unconfirmed);
  CHECK(all.waits());
  CHECK(sent("release") == 0);
  advance(1s);
  CHECK(last_sent() == wire(0));
  grants();
  check_all_held(all);
  let_go(all);
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "after two unanswered scripts all fields are given back before others are sent") {
  const auto all = lock_all(ab);
  fails(errc::unconfirmed);
  advance(1s);
  fails(errc::unconfirmed);
  CHECK(wire(2).starts_with("release(a; "));
  CHECK(wire(3).starts_with("release(b; "));
  advance(1s);
  CHECK(sent("acquire_all") == 2);
  not_yours();
  advance(1s);
  CHECK(sent("acquire_all") == 2);
  not_yours();
  advance(1s);
  CHECK(sent("acquire_all") == 3);
  CHECK(last_sent() == "acquire_all(a, b; 30000, #3, #4)");
  grants();
  check_all_held(all);
}

TEST_CASE_METHOD(multi_fixture,
                 "what a busy answer to a second copy does not prove to be free is given back where it leaves") {
  const auto all = lock_all(abc);
  fails(errc::unconfirmed);
  advance(1s);
  busy_at(2);  // the first copy may have had c, or may have it yet
  CHECK(sent("release") == 1);
  CHECK(last_sent().starts_with("release(c; publish, redisson_lock__channel:{c}, #3)"));
  CHECK(all.waits());
}

TEST_CASE_METHOD(multi_fixture, "a grant that came too late to be of use is given back, of each") {
  const auto all = lock_all(ab, with({.ttl = 1s}));
  advance(970ms);
  grants();
  CHECK(all.waits());
  CHECK(sent("release") == 2);
  frees();
  frees();
  advance(50ms);
  grants();
  check_all_held(all);
  CHECK(sent("acquire_all") == 2);
}

TEST_CASE_METHOD(multi_fixture, "a server that refuses all for now is asked again") {
  const auto all = lock_all(ab);
  errs("OOM command not allowed when used memory > 'maxmemory'.");
  CHECK(all.waits());
  advance(1s);
  CHECK(sent("acquire_all") == 2);
  grants();
  check_all_held(all);
}

TEST_CASE_METHOD(multi_fixture, "a refusal of all that does not mend is told at once") {
  const auto all = lock_all(ab);
  errs("NOPERM this user has no permissions to run the 'evalsha' command");
  CHECK(all.failed_with(errc::no_permission));
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "a key that is no lock, or has no TTL, fails the call, which says which") {
  for (const long long flaw : {-1, -2}) {
    const auto all = lock_all(ab);
    answers(replies::integers({2, flaw}));
    CHECK(all.failed_with(errc::corrupt_lock));
    CHECK(all.detail().starts_with("lock 'b': "));
  }
  const auto all = lock_all(ab, fenced());
  answers(replies::integers({2, -3}));
  CHECK(all.failed_with(errc::corrupt_lock));
  CHECK(all.detail().find("counter") != std::string::npos);
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "an answer of no known form is a protocol error, and what it may mean is given back") {
  for (const auto& strange : {replies::integer(1), replies::integers({3, 7}), replies::integers({0, 7}),
                              replies::integers({1, -4}), replies::integers({1})}) {
    const auto all = lock_all(ab);
    answers(strange);
    CHECK(all.failed_with(errc::protocol_error));
    CHECK(sent("release") % 2 == 0);
    while (in_flight() > 0) not_yours();
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "a server that does not know the script for several gets its text") {
  const auto all = lock_all(ab);
  errs("NOSCRIPT No matching script. Please use EVAL.");
  CHECK(unanswered().argv[0] == "EVAL");
  grants();
  check_all_held(all);
}

TEST_CASE_METHOD(multi_fixture, "a bounded wait ends at its deadline, wherever it waits") {
  const auto held = hold("b");
  const auto in_line = try_lock_all_for(ab, 1s);
  advance(999ms);
  CHECK(in_line.waits());
  advance(1ms);
  CHECK(in_line.refused());
  unlock(held);
  frees();
  const auto busy = try_lock_all_for(ab, 1s);
  busy_at(1);
  acknowledges("a");
  busy_at(1);
  advance(1s);
  CHECK(busy.refused());
  const auto asks = try_lock_all_for(ab, 700ms);
  advance(700ms);
  CHECK(asks.failed_with(errc::unreachable));
  CHECK(sent("release") == 3);
  grants();
  frees();
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "a bounded wait ends at its deadline where its owner takes a later one meanwhile") {
  const auto bounded = [&] {
    const auto first = hold("a");
    const auto all = try_lock_all_for(ab, 700ms, by(alice));
    advance(100ms);
    hold("b", by(alice));
    unlock(first);
    frees();
    CHECK(last_sent().starts_with("acquire_all(a; "));
    return all;
  };
  SECTION("and its server refuses it") {
    const auto all = bounded();
    server.on_command = [](const auto&) { return replies::error("OOM command not allowed when used memory is high"); };
    errs("OOM command not allowed when used memory is high");
    advance(599ms);
    CHECK(all.waits());
    advance(1ms);
    CHECK_FALSE(all.waits());
  }
  SECTION("and its server is silent") {
    const auto all = bounded();
    advance(600ms);
    CHECK_FALSE(all.waits());
  }
  SECTION("and others have it") {
    const auto all = bounded();
    busy_at(1);
    advance(599ms);
    CHECK(all.waits());
    advance(1ms);
    CHECK_FALSE(all.waits());
  }
}

TEST_CASE_METHOD(multi_fixture, "a bounded wait for the lease of an outer call ends at its deadline") {
  const auto outer = hold("a", by(alice));
  const auto all = try_lock_all_for(ab, 700ms, by(alice, {.ttl = 1min}));
  CHECK(sent("set_hold_count") == 1);
  advance(699ms);
  CHECK(all.waits());
  advance(1ms);
  CHECK(all.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(multi_fixture, "a bounded wait for all is empty where Redis has answered others since it asked") {
  check_result_by_answers_to_others(try_lock_all_for(ab, 100ms));
}

TEST_CASE_METHOD(multi_fixture,
                 "cancelled while it asks, it gives back what it may be granted, and who comes next waits for that") {
  const auto all = lock_all(ab);
  const auto next = lock("b");
  all.cancel();
  CHECK(all.error() == boost::asio::error::operation_aborted);
  CHECK(sent("release") == 2);
  CHECK(sent("acquire") == 0);
  grants();
  CHECK(heard() == "acquire_cancelled");
  frees();
  frees();
  CHECK(sent("acquire") == 1);
  grants();
  CHECK(next.granted());
  let_go(next);
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "cancelled before its script was written, it has nothing to give back") {
  link_down();
  check_cancelled_without_release(lock_all(ab));
}

TEST_CASE_METHOD(multi_fixture, "cancelled while it waits, it leaves each line") {
  const auto held = hold("b", by(alice));
  const auto in_line = lock_all(ab);
  in_line.cancel();
  CHECK(in_line.error() == boost::asio::error::operation_aborted);
  let_go(held);
  const auto busy = lock_all(abc);
  busy_at(2);
  busy.cancel();
  CHECK(busy.error() == boost::asio::error::operation_aborted);
  CHECK(in_flight() == 0);
  CHECK(heard() == "acquired acquire_cancelled released acquire_cancelled");
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "cancelled after a re-entry, it gives that back alone") {
  const auto a = hold("a", by(alice));
  const auto all = lock_all(ab, by(alice));
  reenters();
  busy_at(1);
  all.cancel();
  CHECK(all.error() == boost::asio::error::operation_aborted);
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  reenters();
  CHECK(a.value()->of->count() == 1);
  let_go(a);
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "a cancellation after the end of a call for several changes nothing") {
  const auto all = lock_all(ab);
  grants();
  all.cancel();
  check_all_held(all);
}

TEST_CASE_METHOD(multi_fixture, "a client that closes answers it, wherever it waits") {
  const auto busy = lock_all({"c", "d"});
  busy_at(2);
  const auto asks = lock_all(ab);
  const auto in_line = lock_all(abc);
  const auto closed = close();
  CHECK(busy.failed_with(errc::shutting_down));
  CHECK(asks.failed_with(errc::shutting_down));
  CHECK(in_line.failed_with(errc::shutting_down));
  CHECK(sent("release") == 2);
  while (in_flight() > 0) not_yours();
  CHECK(closed.succeeded());
  CHECK(lock_all({"a"}).failed_with(errc::shutting_down));
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "while a client drains, it is for owners that hold") {
  const auto held = hold("h", by(alice));
  const auto his = lock_all(ab, by(bob)), hers = lock_all(ab, by(alice));
  verb_call drained;
  locks->drain(10s, [drained] { drained.answer({}); });
  run();
  CHECK(his.failed_with(errc::shutting_down));
  CHECK(lock_all({"a"}, by(bob)).failed_with(errc::shutting_down));
  check_drain_ends_with(held, hers, drained);
}

TEST_CASE_METHOD(multi_fixture, "an engine that is destroyed answers nobody, wherever it waits") {
  const auto busy = lock_all({"c", "d"});
  busy_at(1);
  const auto asks = lock_all(ab);
  const auto in_line = lock_all(abc);
  locks.reset();
  CHECK(asks.waits());
  CHECK(busy.waits());
  CHECK(in_line.waits());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(multi_fixture, "a thousand locks are one script") {
  std::vector<std::string> names;
  for (int n = 0; n < 1000; ++n) names.push_back("name:" + std::to_string(1000 + n));
  const auto all = lock_all(names);
  CHECK(server.count() == 1);
  grants();
  check_all_held(all);
}

TEST_CASE_METHOD(multi_fixture, "a wait that crosses a change of its server's run ends, and nothing is taken or told") {
  server.run_ids = {"first run"};
  expected_run = "first run";
  const auto all = lock_all(ab);
  busy_at(2);
  CHECK(all.waits());
  server.run_ids = {"second run"};
  acknowledges("b");
  busy_at(2);
  CHECK(all.refused());
  CHECK(moved == 1);
  CHECK(heard().empty());
  const auto again = lock_all(ab);
  CHECK(again.refused());
  CHECK(moved == 2);
  expected_run = "second run";
  const auto now = lock_all(ab);
  grants();
  check_all_held(now);
  let_go(now);
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "a wait whose order is another one now ends, and nothing is taken or told") {
  server.run_ids = {"first run"};
  expected_run = "first run";
  const auto waits = lock_all(ab), stands_behind = lock_all(ab);
  busy_at(2);
  for (const auto& all : {stands_behind, waits}) {
    std::static_pointer_cast<detail::multi_acquisition>(all.place())->order_changed();
    CHECK(all.refused());
  }
  CHECK(moved == 2);
  CHECK(heard().empty());
  while (in_flight() > 0) not_yours();
  check_nothing_is_left();
}

TEST_CASE_METHOD(multi_fixture, "whoever relies on the run of a server hears once that it is another one") {
  server.run_ids = {"first run"};
  const auto wanted = std::make_shared<int>();
  int changes = 0;
  locks->when_run_changes(keys("a"), "first run", wanted, [&] { ++changes; });
  const auto reconnects = [&](const char* run_id) {
    link_down();
    server.run_ids = {run_id};
    link_up();
  };
  reconnects("first run");
  CHECK(changes == 0);
  reconnects("");  // it is not known yet
  CHECK(changes == 0);
  reconnects("second run");
  CHECK(changes == 1);
  reconnects("third run");
  CHECK(changes == 1);
  locks->when_run_changes(keys("a"), "second run", wanted, [&] { ++changes; });  // too late
  CHECK(changes == 2);
  auto unwanted = std::make_shared<int>();
  locks->when_run_changes(keys("a"), "third run", unwanted, [&] { ++changes; });
  unwanted.reset();
  reconnects("fourth run");
  CHECK(changes == 2);
}

TEST_CASE("no allocation that fails where several are asked for, granted, waited for or left leaves anything behind") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto runs = starve_each_step<multi_fixture, multi_call>(
      [](multi_fixture& fixture) {
        return fixture.lock_all({"a", "b"});
      },
      replies::nil(), replies::integers({2, 10000}),
      [](multi_fixture& fixture, multi_call&) {
        fixture.fails(errc::unconfirmed);
        fixture.advance(1s);
        fixture.busy_at(2);
      });
  CHECK(std::accumulate(runs.begin(), runs.end(), std::size_t{0}) > 20);
}
