// SPDX-License-Identifier: BSL-1.0
// The names and calls of a shared mutex, and Redisson's own lock on the same key.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "sim/script_rig.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"
#include "support/redisson_scripts.hpp"

namespace holdfast::test::shared_rig {

using scripts::asked;
using scripts::eval;
using scripts::servers;
using sim::arguments;

/// Numbers lie so far apart that a slow machine mixes none up.
inline constexpr long long ttl = 300'000, long_ttl = 1'000'000, tolerance = 90'000;
inline const std::string ms = std::to_string(ttl), long_ms = std::to_string(long_ttl), reserve_ms = long_ms;

inline const std::string lock = "m", queue = "holdfast_queue:{m}", readers = "holdfast_readers:{m}",
                         turn = "holdfast_turn:{m}", channel = "redisson_rwlock:{m}",
                         waiters_channel = "holdfast_waiters:{m}", wake = "holdfast_wake:{m}:";
/// The uuids of clients. The waiter listens on its wake channel, the dead one does not.
inline const std::string me = "00000000-0000-8000-8000-0000000000aa", other = "00000000-0000-8000-8000-0000000000bb",
                         waiter = "00000000-0000-8000-8000-0000000000cc", dead = "00000000-0000-8000-8000-0000000000dd";
inline const std::string my1 = me + ":1", other1 = other + ":1", waiter1 = waiter + ":1";
inline std::string deadline(const std::string& owner) { return "{m}:" + owner + ":rwlock_timeout:1"; }

/// A flag that is 0 is left out.
inline arguments with_flag(arguments all, const std::string& flag) {
  if (flag != "0") all.push_back(flag);
  return all;
}
inline arguments read_acquire(const std::string& owner, const std::string& stand, const std::string& word = "publish") {
  return eval(detail::lua::read_acquire, {lock, deadline(owner), queue, readers, turn},
              with_flag({ms, owner, word, channel}, stand));
}
inline arguments write_acquire(const std::string& owner, const std::string& stand,
                               const std::string& word = "publish") {
  return eval(detail::lua::write_acquire, {lock, queue, readers, turn},
              with_flag({ms, owner + ":write", word, "{m}"}, stand));
}
inline arguments read_release(const std::string& word, const std::string& owner, const std::string& leave,
                              const std::string& reserve = reserve_ms) {
  return eval(detail::lua::read_release, {lock, deadline(owner), queue, readers, turn},
              with_flag({word, channel, owner, reserve}, leave));
}
inline arguments write_release(const std::string& word, const std::string& owner, const std::string& place,
                               const std::string& reserve = reserve_ms) {
  return eval(detail::lua::write_release, {lock, queue, readers, turn},
              with_flag({word, channel, owner + ":write", reserve}, place));
}
inline arguments downgrade(const std::string& word, const std::string& owner, const std::string& reserve = reserve_ms) {
  return eval(detail::lua::downgrade, {lock, deadline(owner), readers, turn}, {ms, owner, word, channel, reserve});
}

/// With names for uuids, and "ttl" or "long" for such a number.
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
  for (const auto& [id, name] : {std::pair(&me, "me"), {&other, "other"}, {&waiter, "waiter"}, {&dead, "dead"}})
    if (const auto at = text.find(*id); at != text.npos) text.replace(at, id->size(), name);
  return text;
}

struct listening_simulation {
  scripts::simulated servers;
  listening_simulation() {
    const auto session = servers.node.connect();
    servers.node.execute(session, {"SUBSCRIBE", wake + waiter});
    servers.node.execute(session, {"SSUBSCRIBE", wake + waiter});
  }
};

struct listening_pair {
  scripts::real_pair servers;
  raw_client at_first{servers.first}, at_second{servers.second};
  listening_pair() {
    for (auto* client : {&at_first, &at_second})
      for (const auto* verb : {"SUBSCRIBE", "SSUBSCRIBE"}) client->call({verb, wake + waiter});
  }
};

/// The changes of the key by Redisson's RReadWriteLock, by the facts of its wire.
namespace peer {

using namespace redisson::read_write;

inline arguments call(std::string_view script, const std::string& owner) {
  return {"EVAL", std::string(script), "2", lock, channel, owner, ms, "publish", "{m}:"};
}

}  // namespace peer

}  // namespace holdfast::test::shared_rig
