// SPDX-License-Identifier: BSL-1.0
#include "sync/renewal/renewals.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr auto drift = 302ms;  // of 30 s
nanoseconds left(const lock_call& c) { return c.value()->of->left(); }

}  // namespace

// ---- what goes along

TEST_CASE_METHOD(engine_fixture, "ten thousand holds share a hundred commands") {
  play();
  for (int i = 0; i < 10'000; ++i) {
    lock("n" + std::to_string(i));
    if (i % 500 == 499) advance(1ms);
  }
  const auto before = server.count();
  advance(10s);
  CHECK(sent("renew") == 100);
  for (auto n = before; n < server.count(); ++n) CHECK(server.sent(n).keys().size() == 100);
  CHECK(heard().find("lost") == std::string::npos);
}

TEST_CASE_METHOD(engine_fixture, "holds that are due soon go along and others do not") {
  const auto a = hold("a");
  advance(500ms);
  const auto b = hold("b");  // 500 ms are a sixtieth of its TTL
  advance(1ms);
  const auto c = hold("c");
  advance(9499ms);
  CHECK(last_sent() == "renew(a, b; 30000, 30000, #1, #2)");
}

TEST_CASE_METHOD(engine_fixture, "the renewal of a long lease takes no short one along before its time") {
  const auto a = hold("a", with({.ttl = 10min, .renew = true}));
  advance(195s);
  const auto b = hold("b");  // due in 10 s, and these are no more than a sixtieth of the other's TTL
  advance(5s);
  CHECK(last_sent() == "renew(a; 600000, #1)");
  confirms();
  advance(5s);
  CHECK(last_sent() == "renew(b; 30000, #2)");
}

TEST_CASE_METHOD(engine_fixture, "kinds of one layout are renewed together if their renewal step is the same") {
  static const auto reader = [] {  // the engine refers to it to its end
    auto row = detail::plain_lock;
    row.renew = detail::simple_lock.renew;
    return row;
  }();
  const auto plain = hold("a"), read = hold("b", {{}, {}, &reader}), fenced_one = lock("c", fenced());
  grants_token(1);
  const auto other = hold("d");
  const auto before = server.count();
  advance(10s);
  REQUIRE(server.count() - before == 2);
  CHECK(wire(before) == "renew(a, c, d; 30000, 30000, 30000, #1, #3, #4)");
  CHECK(wire(before + 1) == "simple_renew(b; 30000, #2)");
}

// ---- how long it may take

TEST_CASE_METHOD(engine_fixture, "a renewal takes the command timeout at most") {
  const auto a = hold("a");
  advance(10s);
  CHECK(server.last().timeout == 500ms);
}

TEST_CASE_METHOD(engine_fixture, "a renewal takes half of what is left at most") {
  const auto a = hold("a");
  advance(10s);
  fails(errc::unconfirmed);
  clock.skip(30s - drift - 10s - 100ms);
  timers.run_due();
  CHECK(server.last().timeout == 50ms);
}

TEST_CASE_METHOD(engine_fixture, "a hold that is about to end does not cut short the renewal of others") {
  const auto a = hold("a", with({.ttl = 300ms})), b = hold("b");
  link_down();
  advance(287ms);
  link_up();
  advance(0ms);
  REQUIRE(in_flight() == 2);
  CHECK(server.sent(2).line().find(" b ") == std::string::npos);
  CHECK(server.sent(2).timeout == left(a) / 2);
  CHECK(server.sent(3).timeout == 500ms);
}

TEST_CASE_METHOD(engine_fixture, "a renewal of a short lease takes a fifth of its TTL at most") {
  const auto a = hold("a", with({.ttl = 150ms, .renew = true}));
  advance(50ms);
  CHECK(server.last().timeout == 30ms);
}

// ---- the answers to one script

TEST_CASE_METHOD(engine_fixture, "in a shared command each hold gets its own answer") {
  const auto a = hold("a"), b = hold("b"), c = hold("c");
  advance(10s);
  answers(replies::integers({1, 0, 1}));
  CHECK(state(a) == lease_state::held);
  CHECK(state(b) == lease_state::lost);
  CHECK(state(c) == lease_state::held);
}

TEST_CASE_METHOD(engine_fixture, "an error of the server is a failed renewal whatever it says") {
  for (const auto* text :
       {"LOADING Redis is loading", "NOPERM no permission", "READONLY replica", "ERR what", "BUSY script"}) {
    CAPTURE(text);
    engine_fixture f;
    const auto a = f.hold("a");
    f.advance(10s);
    f.heard();
    f.errs(text);
    CHECK(f.heard() == "renewal_failed suspended");
    f.advance(500ms);
    f.confirms();
    CHECK(state(a) == lease_state::held);
  }
}

TEST_CASE_METHOD(engine_fixture, "a confirmation of the wrong length is a failed renewal") {
  const auto a = hold("a");
  advance(10s);
  answers(replies::integers({1, 1}));
  CHECK(state(a) == lease_state::suspended);
}

TEST_CASE_METHOD(engine_fixture, "a server that lost the script renews by its text") {
  const auto a = hold("a");
  advance(10s);
  errs("NOSCRIPT No matching script.");
  CHECK(server.last().argv[0] == "EVAL");
  confirms();
  CHECK(left(a) == 30s - drift);
}

TEST_CASE_METHOD(engine_fixture, "a key that may not be renewed any more does not take the others of its batch along") {
  const auto a = hold("a"), b = hold("b");
  advance(10s);
  REQUIRE(last_sent() == "renew(a, b; 30000, 30000, #1, #2)");
  errs("NOPERM this user has no permissions to access one of the keys used as arguments");
  REQUIRE(in_flight() == 2);
  errs("NOPERM this user has no permissions to access one of the keys used as arguments");
  confirms();
  advance(20s);
  CHECK_FALSE(a.value()->of->exclusive());
  CHECK(b.value()->of->exclusive());
}

// ---- several servers

TEST_CASE_METHOD(engine_fixture, "a link that is down suspends what lives on its node, and nothing else") {
  lives_on(1, "b");
  const auto a = hold("a"), b = hold("b");
  link_down(1);
  CHECK(state(a) == lease_state::held);
  CHECK(state(b) == lease_state::suspended);
  link_up(1);
  CHECK(last_sent() == "renew(b; 30000, #2)");
  CHECK(in_flight() == 1);
  confirms();
  CHECK(state(b) == lease_state::held);
}

TEST_CASE_METHOD(engine_fixture, "while a node cannot be reached its renewals wait, and no others do") {
  lives_on(1, "b");
  const auto a = hold("a"), b = hold("b");
  link_down(1);
  for (int i = 0; i < 2; ++i) {
    advance(10s);
    REQUIRE(in_flight() == 1);
    CHECK(last_sent() == "renew(a; 30000, #1)");
    confirms();
  }
  CHECK(state(a) == lease_state::held);
  CHECK(left(a) == 30s - drift);
  CHECK(left(b) == 10s - drift);
  link_up(1);
  CHECK(last_sent() == "renew(b; 30000, #2)");
  confirms();
  CHECK(state(b) == lease_state::held);
  CHECK(left(b) == 30s - drift);
}

TEST_CASE_METHOD(engine_fixture, "holds of two nodes do not share a command") {
  lives_on(1, "b");
  lives_on(1, "d");
  for (const auto* name : {"a", "b", "c", "d"}) hold(name);
  const auto before = server.count();
  advance(10s);
  REQUIRE(server.count() - before == 2);
  CHECK(wire(before) == "renew(a, c; 30000, 30000, #1, #3)");
  CHECK(server.sent(before).node == 0);
  CHECK(wire(before + 1) == "renew(b, d; 30000, 30000, #2, #4)");
  CHECK(server.sent(before + 1).node == 1);
}

TEST_CASE_METHOD(engine_fixture, "a node that answers nothing keeps no other from being renewed") {
  play();
  constexpr int many = 2000;
  for (int i = 0; i < many; ++i) {
    const auto name = "silent" + std::to_string(i);
    lives_on(1, name);
    lock(name);
  }
  advance(1s);
  const auto a = lock("a");
  run();
  server.on_command = [this](const fake_topology::command& c) -> std::optional<redis::reply> {
    if (c.node == 1) return std::nullopt;
    return obey(c);
  };
  advance(15s);
  CHECK(in_flight() == 16);
  CHECK(state(a) == lease_state::held);
  CHECK(left(a) > 20s);
}

// ---- groups of keys

TEST_CASE_METHOD(engine_fixture, "a script renews one group, and what is due at a node goes out together") {
  server.grouped_by = [](std::string_view key) { return static_cast<std::uint32_t>(key.front()); };
  for (const auto* name : {"b1", "a1", "b2", "c1", "a2"}) hold(name);
  const auto before = server.count();
  advance(10s);
  REQUIRE(server.count() - before == 3);
  CHECK(wire(before) == "renew(a1, a2; 30000, 30000, #2, #5)");
  CHECK(wire(before + 1) == "renew(b1, b2; 30000, 30000, #1, #3)");
  CHECK(wire(before + 2) == "renew(c1; 30000, #4)");
  CHECK(server.sent(before).sent == server.sent(before + 2).sent);
  answers(replies::integers({1, 0}));
  confirms();
  confirms();
  CHECK(heard() == "acquired acquired acquired acquired acquired lost");
}

TEST_CASE_METHOD(engine_fixture, "ten thousand holds in as many groups are renewed as soon as in one") {
  std::uint32_t groups = 0;
  std::map<std::string, std::uint32_t, std::less<>> group;
  server.grouped_by = [&](std::string_view key) { return group.try_emplace(std::string(key), groups++).first->second; };
  play();
  for (int i = 0; i < 10'000; ++i) lock("n" + std::to_string(i));
  run();
  advance(10s);
  CHECK(sent("renew") == 10'000);
  CHECK(heard().find("lost") == std::string::npos);
}

TEST_CASE_METHOD(engine_fixture,
                 "of a node that answers nothing no more holds are under way for being of many groups") {
  server.grouped_by = [](std::string_view key) {
    return static_cast<std::uint32_t>(std::stoul(std::string(key.substr(1))));
  };
  play();
  for (int i = 0; i < 2000; ++i) lock("n" + std::to_string(i));
  run();
  server.on_command = nullptr;
  advance(10s);
  CHECK(in_flight() == 1600);
}

TEST_CASE_METHOD(engine_fixture, "two keys of a slot that is on its way are renewed each by itself") {
  const auto a = hold("a"), b = hold("b");
  advance(10s);
  REQUIRE(last_sent() == "renew(a, b; 30000, 30000, #1, #2)");
  CHECK(server.last().divisible);
  errs("TRYAGAIN Multiple keys request during rehashing of slot");
  REQUIRE(in_flight() == 2);
  CHECK_FALSE(server.last().divisible);
  CHECK(heard() == "acquired acquired");
  confirms();
  confirms();
  CHECK(left(a) == 30s - drift);
  CHECK(left(b) == 30s - drift);
}

TEST_CASE_METHOD(engine_fixture, "one server that refuses keys of several slots is asked slot by slot from then on") {
  for (const auto* name : {"{x}a", "{y}b", "{x}c"}) hold(name);
  advance(10s);
  REQUIRE(sent("renew") == 1);
  heard();
  errs("CROSSSLOT Keys in request don't hash to the same slot");
  REQUIRE(in_flight() == 2);
  CHECK(heard().empty());
  for (int i = 0; i < 2; ++i) {
    const std::set sent{wire(server.count() - 2), wire(server.count() - 1)};
    CHECK(sent == std::set<std::string>{"renew({x}a, {x}c; 30000, 30000, #1, #3)", "renew({y}b; 30000, #2)"});
    confirms();
    confirms();
    if (i == 0) advance(10s);
  }
  CHECK(sent("renew") == 5);
}

TEST_CASE_METHOD(engine_fixture, "one that refuses keys of one slot as well is asked for one key at a time") {
  const auto a = hold("{x}a"), b = hold("{x}b");
  advance(10s);
  errs("CROSSSLOT Keys in request don't hash to the same slot");
  errs("CROSSSLOT Keys in request don't hash to the same slot");
  REQUIRE(in_flight() == 2);
  confirms();
  confirms();
  CHECK(state(a) == lease_state::held);
  CHECK(state(b) == lease_state::held);
}
