// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/node.hpp"

#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "support/catch.hpp"
#include "testing/sim/server.hpp"

namespace {

using namespace holdfast::sim;
using kind = reply::kind;
namespace lua = holdfast::detail::lua;

struct rig {
  std::int64_t now_us = 1'000'000'000;
  std::vector<std::pair<node::session_id, std::string>> sent;
  std::vector<node::session_id> ended;
  node server{[this] { return now_us; },
              [this](node::session_id to, const reply& r) { sent.emplace_back(to, r.elements.at(2).text); },
              [this](node::session_id id) { ended.push_back(id); }};

  reply acquire(const std::string& field) {
    return server.execute({"EVAL", std::string(lua::acquire.body), "1", "lock", "100", field});
  }
};

}  // namespace

TEST_CASE("a key is there in the millisecond in which it ends, and gone in the next") {
  rig r;
  CHECK(r.acquire("a").type == kind::nil);
  r.now_us += 100'000;
  CHECK(r.acquire("b").integer == -2);  // the TTL 0 of a holder that is no holdfast client
  r.now_us += 1'000;
  CHECK(r.acquire("b").type == kind::nil);
}

TEST_CASE("a script that the node has forgotten is unknown by its digest, and known again once it came as a text") {
  rig r;
  const arguments by_digest{"EVALSHA", std::string(lua::acquire.sha1), "1", "lock", "100", "a"};
  r.acquire("a");
  CHECK(r.server.execute(by_digest).type == kind::nil);
  r.server.forget_scripts();
  CHECK(r.server.execute(by_digest).text.starts_with("NOSCRIPT"));
  r.acquire("a");
  CHECK(r.server.execute(by_digest).type == kind::nil);
}

TEST_CASE("a message goes to the sessions that subscribed, and to none that was killed") {
  rig r;
  const auto a = r.server.connect(), b = r.server.connect();
  r.server.execute(a, {"SUBSCRIBE", "channel"});
  r.server.execute(b, {"SUBSCRIBE", "channel"});
  CHECK(r.server.execute({"CLIENT", "KILL", "ID", std::to_string(a)}).integer == 1);
  CHECK(r.server.execute({"PUBLISH", "channel", "0"}).integer == 1);
  CHECK(r.ended == std::vector{a});
  CHECK(r.sent == std::vector{std::pair(b, std::string("0"))});
}

TEST_CASE("what a release is published by decides who hears it") {
  rig r;
  const auto classic = r.server.connect(), sharded = r.server.connect();
  r.server.execute(classic, {"SUBSCRIBE", "channel"});
  r.server.execute(sharded, {"SSUBSCRIBE", "channel"});
  const auto heard_by = [&](const std::string& word) {
    r.acquire("a");
    r.sent.clear();
    r.server.execute({"EVAL", std::string(lua::release.body), "1", "lock", word, "channel", "a", "0", "100"});
    std::set<node::session_id> who;
    for (const auto& [session, text] : r.sent) who.insert(session);
    return who;
  };
  CHECK(heard_by("publish") == std::set{classic});
  CHECK(heard_by("spublish") == std::set{sharded});
  CHECK(heard_by("auto") == std::set{sharded});
  CHECK(heard_by("both") == std::set{classic, sharded});
}

TEST_CASE("a full server refuses what grows and frees what is held") {
  rig r;
  r.acquire("a");
  r.server.refuse(refusal::out_of_memory);
  CHECK(r.server.execute({"HSET", "other", "f", "1"}).text.starts_with("OOM"));
  CHECK(r.server.execute({"EVAL", std::string(lua::release.body), "1", "lock", "publish", "channel", "a", "0", "100"})
            .integer == 0);
  CHECK(r.server.keys().all().empty());
}

TEST_CASE("a restart ends sessions, forgets scripts, and keeps data only if told so") {
  rig r;
  const auto session = r.server.connect();
  r.acquire("a");
  r.server.restart(true);
  CHECK_FALSE(r.server.connected(session));
  CHECK(r.server.keys().find("lock"));
  CHECK(r.server.execute({"EVALSHA", std::string(lua::acquire.sha1), "1", "lock", "100", "a"})
            .text.starts_with("NOSCRIPT"));
  r.server.restart(false);
  CHECK_FALSE(r.server.keys().find("lock"));
}

TEST_CASE("a tracked key that ends is pushed when the node is asked to look, once") {
  rig r;
  std::vector<wall_ms> ends;
  r.server.on_tracked_end = [&](wall_ms end) { ends.push_back(end); };
  const auto listener = r.server.connect(), tracker = r.server.connect();
  r.server.execute(listener, {"SUBSCRIBE", "__redis__:invalidate"});
  r.server.execute(tracker, {"CLIENT", "TRACKING", "ON", "REDIRECT", std::to_string(listener), "OPTIN"});
  const auto track = [&] {
    r.server.execute(tracker, {"CLIENT", "CACHING", "YES"});
    return r.server.execute(tracker, {"EXISTS", "lock"});
  };
  r.acquire("a");
  track();
  const auto end = r.now_us / 1000 + 100;
  CHECK(ends == std::vector{end});
  r.server.end_expired();
  CHECK(r.sent.empty());
  CHECK(ends == std::vector{end, end});
  r.now_us += 101'000;
  r.server.end_expired();
  CHECK(r.sent.size() == 1);
  CHECK(r.sent.back().first == listener);
  r.server.end_expired();
  CHECK(r.sent.size() == 1);
}

TEST_CASE("a look at the tracked keys announces one end, the earliest") {
  rig r;
  std::vector<wall_ms> ends;
  r.server.on_tracked_end = [&](wall_ms end) { ends.push_back(end); };
  const auto listener = r.server.connect(), tracker = r.server.connect();
  r.server.execute(tracker, {"CLIENT", "TRACKING", "ON", "REDIRECT", std::to_string(listener)});
  const auto now = r.now_us / 1000;
  for (const auto& [key, ttl] : {std::pair("c", 100), {"a", 300}, {"b", 200}}) {
    r.server.execute({"SET", key, "1", "PX", std::to_string(ttl)});
    r.server.execute(tracker, {"EXISTS", key});
  }
  CHECK(ends == std::vector{now + 100});
  ends.clear();
  r.now_us += 101'000;
  r.server.end_expired();
  CHECK(ends == std::vector{now + 200});
  r.server.restart(true);
  ends.clear();
  const auto next = r.server.connect();
  r.server.execute(next, {"CLIENT", "TRACKING", "ON", "REDIRECT", std::to_string(next)});
  r.server.execute(next, {"EXISTS", "a"});
  CHECK(ends == std::vector{now + 300});
}

TEST_CASE("a server looks at its tracked keys no more often than ends are announced") {
  scheduler plan;
  server one(plan, 1.0);
  auto& node = one.program();
  const auto listener = node.connect(), tracker = node.connect();
  node.execute(tracker, {"CLIENT", "TRACKING", "ON", "REDIRECT", std::to_string(listener)});
  std::size_t events = 0;
  plan.on_new = [&](time_point) { ++events; };
  constexpr int renewals = 60;
  for (int n = 0; n < renewals; ++n) {
    for (const auto& [key, ttl] : {std::pair("a", "2000"), {"b", "1000"}}) {
      node.execute({"SET", key, "1", "PX", ttl});
      node.execute(tracker, {"EXISTS", key});
    }
    plan.run_until(plan.now() + std::chrono::milliseconds(300));
  }
  CHECK(events > 0);
  CHECK(events <= 4 * renewals);
}

TEST_CASE("a key that is changed behind the back of the node is pushed to who tracks it, and so is nothing else") {
  rig r;
  const auto listener = r.server.connect(), tracker = r.server.connect();
  r.server.execute(listener, {"SUBSCRIBE", "other"});
  r.server.execute(tracker, {"CLIENT", "TRACKING", "ON", "REDIRECT", std::to_string(listener)});
  r.server.execute({"SET", "a", "1"});
  for (const auto* key : {"a", "b"}) r.server.execute(tracker, {"GET", key});
  r.server.tamper();
  r.server.tampered();
  CHECK(r.sent.empty());
  r.server.tamper().erase("a");
  r.server.tampered();
  CHECK(r.sent.size() == 1);
  r.server.tamper().put("b", "1");
  r.server.tampered();
  CHECK(r.sent.size() == 2);
  r.server.disconnect(listener);
  r.server.execute(tracker, {"GET", "a"});
  r.server.execute({"SET", "a", "1"});
  CHECK(r.sent.size() == 2);
}
