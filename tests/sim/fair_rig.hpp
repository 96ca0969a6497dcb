// SPDX-License-Identifier: BSL-1.0
// The names and calls of a fair mutex, and the listeners of some places.
#pragma once
#include <string>
#include <utility>

#include "lua_scripts.hpp"
#include "sim/script_rig.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"

namespace holdfast::test::fair_rig {

using scripts::asked;
using scripts::eval;
using sim::arguments;

/// Numbers lie so far apart that a slow machine mixes none up.
inline constexpr long long ttl = 300'000, long_ttl = 1'000'000, tolerance = 90'000;
inline const std::string ms = std::to_string(ttl), long_ms = std::to_string(long_ttl);

inline const std::string lock = "m", queue = "redisson_lock_queue:{m}", deadlines = "redisson_lock_timeout:{m}",
                         channel = "redisson_lock__channel:{m}:";
/// The uuids of clients, the last two those of peers. Places of mine, of the waiter and of the first peer are heard.
inline const std::string me = "00000000-0000-8000-8000-0000000000aa", other = "00000000-0000-8000-8000-0000000000bb",
                         waiter = "00000000-0000-8000-8000-0000000000cc", dead = "00000000-0000-8000-8000-0000000000dd",
                         peer = "00000000-0000-4000-8000-0000000000ee", mute = "00000000-0000-4000-8000-0000000000ff";
inline const std::string far = "4102444800000", over = "1";  // deadlines

inline std::string place(const std::string& client, int number = 0) {
  return client + ':' + std::to_string(1'000'000'000 + number);
}
inline std::string thread(const std::string& of_peer) { return of_peer + ":7"; }
inline const std::string my1 = me + ":1", my2 = me + ":2", other1 = other + ":1";

inline arguments fair(const detail::lua::script_text& script, const arguments& args) {
  return eval(script, {lock, queue, deadlines}, args);
}
inline arguments acquire(const std::string& owner, const std::string& word = "publish") {
  return fair(detail::lua::fair_acquire, {ms, owner, word});
}
inline arguments suspect(const std::string& owner, const std::string& place) {
  return fair(detail::lua::fair_acquire, {ms, owner, "publish", place});
}
inline arguments stand(const std::string& client, const arguments& numbers = {}, const std::string& word = "publish") {
  arguments all{word, client};
  all.insert(all.end(), numbers.begin(), numbers.end());
  return fair(detail::lua::fair_stand, all);
}
inline arguments release(const std::string& owner, const std::string& word = "publish") {
  return fair(detail::lua::fair_release, {word, owner});
}
inline arguments ride(const std::string& owner, const std::string& next) {
  return fair(detail::lua::fair_release, {"publish", owner, next, ms});
}
inline arguments force(const std::string& word = "publish") { return fair(detail::lua::fair_force, {word}); }

/// With names for uuids and numbers of places, and "ttl" or "long" for such a number.
inline std::string text_of(const value& v) {
  const auto is_about = [&](long long number) { return v.number > number - tolerance && v.number <= number; };
  if (v.type == value::kind::integer && is_about(long_ttl)) return "long";
  if (v.type == value::kind::integer && is_about(ttl)) return "ttl";
  std::string text;
  if (v.type == value::kind::array) {
    for (const auto& element : v.elements) text += (text.empty() ? "" : ", ") + text_of(element);
    return "[" + text + "]";
  }
  text = v.to_string();
  const auto replace = [&](const std::string& part, const char* name) {
    if (const auto at = text.find(part); at != text.npos) text.replace(at, part.size(), name);
  };
  for (const auto& [id, name] : {std::pair(&me, "me"),
                                 {&other, "other"},
                                 {&waiter, "waiter"},
                                 {&dead, "dead"},
                                 {&peer, "peer"},
                                 {&mute, "mute"}})
    replace(*id, name);
  replace(":100000000", "#");
  return text;
}

/// The places that are heard.
inline const arguments heard{place(waiter), place(waiter, 1), place(me, 1), place(me, 3), thread(peer)};

struct listening_simulation {
  scripts::simulated servers;
  listening_simulation() {
    const auto session = servers.node.connect();
    for (const auto& each : heard)
      for (const auto* verb : {"SUBSCRIBE", "SSUBSCRIBE"}) servers.node.execute(session, {verb, channel + each});
  }
};

struct listening_pair {
  scripts::real_pair servers;
  raw_client at_first{servers.first}, at_second{servers.second};
  listening_pair() {
    for (auto* client : {&at_first, &at_second})
      for (const auto& each : heard)
        for (const auto* verb : {"SUBSCRIBE", "SSUBSCRIBE"}) client->call({verb, channel + each});
  }
};

}  // namespace holdfast::test::fair_rig
