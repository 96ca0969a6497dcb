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

inline arguments read_acquire(const std::string& owner, const std::string& stand, const std::string& word = "publish") {
  return eval(detail::lua::read_acquire, {lock, deadline(owner), queue, readers, turn},
              {ms, owner, stand, word, channel, waiters_channel, wake});
}
inline arguments write_acquire(const std::string& owner, const std::string& stand) {
  return eval(detail::lua::write_acquire, {lock, queue, readers, turn}, {ms, owner + ":write", stand, "{m}"});
}
inline arguments read_release(const std::string& word, const std::string& owner, const std::string& leave,
                              const std::string& reserve = reserve_ms) {
  return eval(detail::lua::read_release, {lock, deadline(owner), queue, readers, turn},
              {word, channel, owner, leave, waiters_channel, wake, reserve});
}
inline arguments write_release(const std::string& word, const std::string& owner, const std::string& leave,
                               const std::string& again, const std::string& reserve = reserve_ms) {
  return eval(detail::lua::write_release, {lock, queue, readers, turn},
              {word, channel, owner + ":write", leave, again, waiters_channel, wake, reserve});
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

/// The changes of the key by Redisson's RReadWriteLock, by the facts of its wire. KEYS: the lock.
namespace peer {

// (lease, owner) -> nil: acquired | PTTL
inline constexpr std::string_view read_lock = R"(
local mode = redis.call('hget', KEYS[1], 'mode')
if mode and mode ~= 'read' and redis.call('hexists', KEYS[1], ARGV[2] .. ':write') == 0 then
  return redis.call('pttl', KEYS[1])
end
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'read')
end
local held = redis.call('hincrby', KEYS[1], ARGV[2], 1)
redis.call('set', '{' .. KEYS[1] .. '}:' .. ARGV[2] .. ':rwlock_timeout:' .. held, 1, 'PX', ARGV[1])
redis.call('pexpire', KEYS[1], string.format('%.0f', math.max(redis.call('pttl', KEYS[1]), tonumber(ARGV[1]))))
return nil)";

// (channel, owner) -> 1: the last | 0: others hold it | nil: not this owner's
inline constexpr std::string_view read_unlock = R"(
local mode = redis.call('hget', KEYS[1], 'mode')
if not mode then
  redis.call('publish', ARGV[1], '0')
  return nil
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return nil
end
local prefix = '{' .. KEYS[1] .. '}:'
local held = redis.call('hincrby', KEYS[1], ARGV[2], -1)
if held == 0 then
  redis.call('hdel', KEYS[1], ARGV[2])
end
redis.call('del', prefix .. ARGV[2] .. ':rwlock_timeout:' .. held + 1)
if redis.call('hlen', KEYS[1]) > 1 then
  local longest, all = -3, redis.call('hgetall', KEYS[1])
  for i = 1, #all, 2 do
    for k = tonumber(all[i + 1]) or 0, 1, -1 do
      longest = math.max(longest, redis.call('pttl', prefix .. all[i] .. ':rwlock_timeout:' .. k))
    end
  end
  if longest > 0 then
    redis.call('pexpire', KEYS[1], string.format('%.0f', longest))
    return 0
  elseif mode == 'write' then
    return 0
  end
end
redis.call('del', KEYS[1])
redis.call('publish', ARGV[1], '0')
return 1)";

// (lease, owner) -> nil: acquired | PTTL
inline constexpr std::string_view write_lock = R"(
local mode, field = redis.call('hget', KEYS[1], 'mode'), ARGV[2] .. ':write'
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'write')
  redis.call('hset', KEYS[1], field, 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
elseif mode == 'write' and redis.call('hexists', KEYS[1], field) == 1 then
  redis.call('hincrby', KEYS[1], field, 1)
  redis.call('pexpire', KEYS[1], string.format('%.0f', redis.call('pttl', KEYS[1]) + ARGV[1]))
  return nil
end
return redis.call('pttl', KEYS[1]))";

// (channel, owner, lease) -> 1: the last | 0: it still holds it | nil: not this owner's
inline constexpr std::string_view write_unlock = R"(
local field = ARGV[2] .. ':write'
if redis.call('hget', KEYS[1], 'mode') ~= 'write' or redis.call('hexists', KEYS[1], field) == 0 then
  return nil
end
if redis.call('hincrby', KEYS[1], field, -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[3])
  return 0
end
redis.call('hdel', KEYS[1], field)
if redis.call('hlen', KEYS[1]) == 1 then
  redis.call('del', KEYS[1])
  redis.call('publish', ARGV[1], '1')
else
  redis.call('hset', KEYS[1], 'mode', 'read')
end
return 1)";

inline arguments call(std::string_view script, arguments args) {
  arguments all{"EVAL", std::string(script), "1", lock};
  all.insert(all.end(), args.begin(), args.end());
  return all;
}

}  // namespace peer

}  // namespace holdfast::test::shared_rig
