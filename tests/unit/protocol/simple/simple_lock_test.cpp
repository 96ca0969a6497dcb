// SPDX-License-Identifier: BSL-1.0
// What a simple lock sends, and what its rules do in a line.
#include <chrono>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "unit/protocol/expected_calls.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using detail::simple_lock;

namespace {

const detail::lock_keys a(simple_lock, "a"), b(simple_lock, "b");

struct simple_fixture : engine_fixture {
  using engine_fixture::engine_fixture;
  lock_call lock_simple(const std::string& name, std::optional<owner> who = {}) { return lock(name, simple(who)); }
  lock_call hold_simple(const std::string& name, std::optional<owner> who = {}) {
    auto c = lock_simple(name, who);
    sets();
    REQUIRE(c.granted());
    return c;
  }
  // The server's answers to SET NX.
  void sets() { answers(replies::ok()); }
  void finds_it_set() { answers(replies::nil()); }
  std::string simple_channel(const std::string& name) const { return detail::channel_of(*keys(name, simple_lock)); }
};

}  // namespace

TEST_CASE("a simple lock is one key, and a channel of its own") {
  CHECK(detail::channel_of(a) == "holdfast_simple:{a}");
  CHECK(detail::channel_of(detail::lock_keys(simple_lock, "{x}a")) == "holdfast_simple:{x}a");
}

TEST_CASE("a simple lock's calls have the operands of their scripts") {
  const std::vector<detail::renewal> holds{{&a, u1, {1s}}, {&b, u2, {2s, 3s}}};
  CHECK(by_digest(simple_lock.first_acquire.make(a, 30s, u1)) == words{"SET", "a", "u:1", "NX", "PX", "30000"});
  CHECK(by_digest(simple_lock.acquire.make(a, 30s, u1)) ==
        words{"EVALSHA", std::string(detail::lua::simple_acquire.sha1), "1", "a", "30000", "u:1"});
  CHECK(operands(simple_lock.renew.make(holds)) == words{"2", "a", "b", "1000", "2000", "u:1", "u:2", "1000", "3000"});
  CHECK(operands(simple_lock.renew.make_one(a, {1s}, u1)) == words{"1", "a", "1000", "u:1"});
  CHECK(operands(simple_lock.release.make(a, u1)) == words{"1", "a", "publish", "holdfast_simple:{a}", "u:1"});
  CHECK(operands(simple_lock.force_release.make(a)) == words{"1", "a", "publish", "holdfast_simple:{a}"});
  CHECK(operands(simple_lock.holder.make(a)) == words{"1", "a"});
  CHECK(operands(simple_lock.count.make(a, u1)) == words{"1", "a"});
}

TEST_CASE("whoever's token is in the key holds it once") {
  const auto count = [](redis::reply r) { return simple_lock.count.read({{}, std::move(r)}, u1); };
  const auto held = [](std::string_view by) {
    return replies::array({replies::string(std::string(by)), replies::string("1"), replies::integer(7)});
  };
  CHECK(count(held(u1.to_text())).value == 1);
  CHECK(count(held("another's")).value == 0);
  CHECK(count(replies::nil()).value == 0);
  CHECK(count(replies::error("WRONGTYPE Operation against a key")).failed->code == errc::corrupt_lock);
}

TEST_CASE_METHOD(simple_fixture, "an owner that holds a simple lock is told at once that it does") {
  const owner alice;
  const auto held = hold_simple("a", alice);
  const auto sent = server.count();
  for (const auto& again :
       {lock("a", simple(alice)), try_lock("a", simple(alice)), try_lock_for("a", 1s, simple(alice))})
    CHECK(again.failed_with(errc::already_held));
  CHECK(server.count() == sent);
  CHECK(held.value()->of->count() == 1);
}

TEST_CASE_METHOD(simple_fixture, "an owner that waits twice for a simple lock gets it once") {
  const owner alice;
  const auto first = lock_simple("a", alice), second = lock_simple("a", alice), other = lock_simple("a");
  sets();
  CHECK(first.granted());
  CHECK(second.failed_with(errc::already_held));
  CHECK(other.waits());
}

TEST_CASE_METHOD(simple_fixture, "an owner that has lost a simple lock waits for it like anybody") {
  const owner alice;
  const auto lost = hold_simple("a", alice);
  advance(config{}.ttl);
  REQUIRE(lost.value()->of->ended());
  const auto again = lock_simple("a", alice);
  CHECK(again.waits());
  CHECK(sent("set") == 2);
}

TEST_CASE_METHOD(simple_fixture, "an owner whose simple lock has just run out is not told that it holds it") {
  const owner alice;
  const auto over = hold_simple("a", alice);
  clock.skip(config{}.ttl);  // and nobody has noticed yet
  CHECK(lock_simple("a", alice).waits());
  CHECK(over.value()->of->ended());
}

TEST_CASE_METHOD(simple_fixture, "an owner that holds again beside a lease that it has lost is told that it holds") {
  const owner alice;
  const auto lost = hold_simple("a", alice);
  advance(config{}.ttl);
  while (in_flight() > 0) fails(errc::unconfirmed);
  const auto held = hold_simple("a", alice);
  CHECK(lock_simple("a", alice).failed_with(errc::already_held));
  unlock(held);
  CHECK(last_sent() == "simple_release(a; publish, holdfast_simple:{a}, #2)");
}

TEST_CASE_METHOD(simple_fixture, "a simple lock and a plain one of the same name have lines and holds of their own") {
  const owner alice;
  const auto simple_one = hold_simple("a", alice), plain = hold("a", by(alice));
  CHECK(simple_one.value()->of != plain.value()->of);
  CHECK(plain.value()->of->count() == 1);
  CHECK(sent("acquire") == 1);
  CHECK(sent("set") == 1);
  force_unlock("a", simple_lock);
  answers(replies::integer(1));
  advance(0ms);
  CHECK(sent("simple_renew") == 1);
  CHECK(sent("renew") == 0);
  confirms_nothing();
  CHECK(simple_one.value()->state() == lease_state::lost);
  CHECK(plain.value()->state() == lease_state::held);
  force_unlock("a");
  answers(replies::integer(1));
  advance(0ms);
  CHECK(sent("renew") == 1);
}

TEST_CASE_METHOD(simple_fixture, "simple locks are renewed together, and plain ones by themselves") {
  hold_simple("a");
  hold("b");
  hold_simple("c");
  advance(config{}.ttl / 3);
  REQUIRE(in_flight() == 2);
  CHECK(sent("renew") == 1);
  CHECK(sent("simple_renew") == 1);
}

TEST_CASE_METHOD(simple_fixture,
                 "a waiter of a simple lock looks again after 20 ms, and later and later up to 250 ms") {
  const auto waits = lock_simple("a");
  finds_it_set();
  CHECK(timers.next_due() == clock.now() + 20ms);
  server.acknowledge(simple_channel("a"));
  run();
  busy(10s);
  for (const auto pause : {20ms, 40ms, 80ms, 160ms, 250ms, 250ms}) {
    CHECK(timers.next_due() == clock.now() + pause);
    advance(pause);
    CHECK(last_sent() == "simple_acquire(a; 30000, #1)");
    busy(10s);
  }
  CHECK(waits.waits());
}

TEST_CASE_METHOD(simple_fixture, "a waiter of a simple lock looks no later than the holder's TTL is over") {
  lock_simple("a");
  finds_it_set();
  server.acknowledge(simple_channel("a"));
  run();
  busy(5ms);
  CHECK(timers.next_due() == clock.now() + 6ms);
}

TEST_CASE_METHOD(simple_fixture,
                 "a waiter's first attempt is SET NX, and whatever it sends after that knows its own field again") {
  const auto a = lock_simple("a");
  CHECK(server.last().line() == "SET a " + uuid + ":1 NX PX 30000");
  SECTION("it was busy") {
    finds_it_set();
    server.acknowledge(simple_channel("a"));
    run();
  }
  SECTION("it was not answered") {
    fails(errc::unconfirmed);
    advance(20ms);
  }
  SECTION("it was refused") { errs("OOM command not allowed when used memory > 'maxmemory'."); }
  SECTION("it was busy, and the line hears its channel already") {
    const auto b = lock_simple("a");
    finds_it_set();
    server.acknowledge(simple_channel("a"));
    run();
    busy(10s);
    a.cancel();
    run();
    advance(20ms);
    CHECK(server.last().line() == "SET a " + uuid + ":2 NX PX 30000");
    finds_it_set();
    CHECK(last_sent() == "simple_acquire(a; 30000, #2)");
    return;
  }
  CHECK(last_sent() == "simple_acquire(a; 30000, #1)");
  grants();
  CHECK(a.granted());
}

TEST_CASE_METHOD(simple_fixture, "a try_lock of a simple lock asks by the script, which tells a key without TTL") {
  const auto a = try_lock("a", simple());
  CHECK(last_sent() == "simple_acquire(a; 30000, #1)");
  answers(replies::integer(-1));
  CHECK(a.failed_with(errc::corrupt_lock));
}

TEST_CASE_METHOD(simple_fixture, "a cancelled SET that may have run is given back under its field") {
  const auto a = lock_simple("a");
  run();
  a.cancel();
  CHECK(last_sent() == "simple_release(a; publish, holdfast_simple:{a}, #1)");
}

TEST_CASE("pauses that were no polls do not make the polls rarer") {
  config c = without_turns();
  c.poll_cap = 500ms;
  simple_fixture f(c);
  const auto held = f.hold_simple("a"), waits = f.lock_simple("a");
  f.advance(4 * c.poll_cap);
  f.unlock(held);
  f.frees();
  f.finds_it_set();
  f.busy(10s);
  CHECK(f.timers.next_due() == f.clock.now() + 20ms);
}
