// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string_view>

/// What a Redisson RLock does in its scripts, in words of our own.
namespace holdfast::test::redisson {

// KEYS: lock. ARGV: ttl, owner.
inline constexpr auto acquire_script = R"(
local free = redis.call('exists', KEYS[1]) == 0
if not free and redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return redis.call('pttl', KEYS[1]) end
redis.call('hincrby', KEYS[1], ARGV[2], 1)
redis.call('pexpire', KEYS[1], ARGV[1])
return false)";

// KEYS: lock, channel, latch. ARGV: message, ttl, owner, how it is published, latch's ttl.
inline constexpr auto unlock_script = R"(
local answered = redis.call('get', KEYS[3])
if answered then return tonumber(answered) end
if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return false end
local released = 0
if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
else
  released = 1
  redis.call('del', KEYS[1])
  redis.call(ARGV[4], KEYS[2], ARGV[1])
end
redis.call('set', KEYS[3], released, 'px', ARGV[5])
return released)";

inline constexpr auto latch_ttl = 16'000;

/// RCountDownLatch.trySetCount(): 1, or 0 if it was set. KEYS: latch, channel. ARGV: message, how it is published,
/// count.
inline constexpr std::string_view set_count = R"(
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('set', KEYS[1], ARGV[3])
redis.call(ARGV[2], KEYS[2], ARGV[1])
return 1)";

/// RCountDownLatch.countDown(). KEYS: latch, channel. ARGV: message, how it is published.
inline constexpr std::string_view count_down = R"(
local left = redis.call('decrby', KEYS[1], 1)
if left <= 0 then redis.call('del', KEYS[1]) end
if left == 0 then redis.call(ARGV[2], KEYS[2], ARGV[1]) end)";

/// The same of an RReadWriteLock. KEYS: lock, channel. ARGV: owner, ttl, the word by which messages are sent, the
/// beginning of the keys of deadlines.
namespace read_write {

// nil: acquired | PTTL
inline constexpr auto read_lock = R"(
local mode = redis.call('hget', KEYS[1], 'mode')
if mode and mode ~= 'read' and redis.call('hexists', KEYS[1], ARGV[1] .. ':write') == 0 then
  return redis.call('pttl', KEYS[1])
end
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'read')
end
local held = redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('set', ARGV[4] .. ARGV[1] .. ':rwlock_timeout:' .. held, '1', 'px', ARGV[2])
redis.call('pexpire', KEYS[1], string.format('%.0f', math.max(redis.call('pttl', KEYS[1]), tonumber(ARGV[2]))))
return nil)";

// 1: the last | 0: others hold it | nil: not this owner's
inline constexpr auto read_unlock = R"(
local mode = redis.call('hget', KEYS[1], 'mode')
if not mode then
  redis.call(ARGV[3], KEYS[2], '0')
  return nil
end
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return nil
end
local held = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if held == 0 then
  redis.call('hdel', KEYS[1], ARGV[1])
end
redis.call('del', ARGV[4] .. ARGV[1] .. ':rwlock_timeout:' .. held + 1)
if redis.call('hlen', KEYS[1]) > 1 then
  local longest, all = -3, redis.call('hgetall', KEYS[1])
  for i = 1, #all, 2 do
    for k = tonumber(all[i + 1]) or 0, 1, -1 do
      longest = math.max(longest, redis.call('pttl', ARGV[4] .. all[i] .. ':rwlock_timeout:' .. k))
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
redis.call(ARGV[3], KEYS[2], '0')
return 1)";

// nil: acquired | PTTL
inline constexpr auto write_lock = R"(
local mode, field = redis.call('hget', KEYS[1], 'mode'), ARGV[1] .. ':write'
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'write')
  redis.call('hset', KEYS[1], field, 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return nil
elseif mode == 'write' and redis.call('hexists', KEYS[1], field) == 1 then
  redis.call('hincrby', KEYS[1], field, 1)
  redis.call('pexpire', KEYS[1], string.format('%.0f', redis.call('pttl', KEYS[1]) + ARGV[2]))
  return nil
end
return redis.call('pttl', KEYS[1]))";

// 1: the last | 0: it still holds it | nil: not this owner's
inline constexpr auto write_unlock = R"(
local field = ARGV[1] .. ':write'
if redis.call('hget', KEYS[1], 'mode') ~= 'write' or redis.call('hexists', KEYS[1], field) == 0 then
  return nil
end
if redis.call('hincrby', KEYS[1], field, -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('hdel', KEYS[1], field)
if redis.call('hlen', KEYS[1]) == 1 then
  redis.call('del', KEYS[1])
  redis.call(ARGV[3], KEYS[2], '1')
else
  redis.call('hset', KEYS[1], 'mode', 'read')
end
return 1)";

}  // namespace read_write

/// The same of an RFairLock. KEYS: lock, queue, deadlines. ARGV: now, owner, time for which a waiter has its place, and
/// more. An owner is its own place.
namespace fair {

/// Each script begins with it: places leave the front when their time is over. One without a deadline stays.
inline constexpr std::string_view purge = R"(
local now, wait = tonumber(ARGV[1]), tonumber(ARGV[3])
while true do
  local first = redis.call('lindex', KEYS[2], 0)
  local ends = first and redis.call('zscore', KEYS[3], first)
  if not ends or tonumber(ends) > now then break end
  redis.call('zrem', KEYS[3], first)
  redis.call('lpop', KEYS[2])
end
)";

/// nil: acquired | a hint when to ask again. ARGV[4]: ttl.
inline constexpr std::string_view acquire_or_stand = R"(
local first = redis.call('lindex', KEYS[2], 0)
if redis.call('exists', KEYS[1]) == 0 and (not first or first == ARGV[2]) then
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], ARGV[2])
  for _, each in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do
    redis.call('zincrby', KEYS[3], string.format('%.0f', -wait), each)
  end
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[4])
  return nil
end
local left = redis.call('pttl', KEYS[1])
if redis.call('zscore', KEYS[3], ARGV[2]) then return math.max(0, left) end
local last = redis.call('lindex', KEYS[2], -1)
local ends = last and last ~= ARGV[2] and redis.call('zscore', KEYS[3], last)
if ends then left = tonumber(ends) - now end
if redis.call('zadd', KEYS[3], string.format('%.0f', left + wait + now), ARGV[2]) == 1 then
  redis.call('rpush', KEYS[2], ARGV[2])
end
return left)";

/// 1: released, and the first place was told | nil: not this owner's. ARGV[4]: the beginning of the channels of places,
/// ARGV[5]: the word by which messages are sent.
inline constexpr std::string_view unlock = R"(
local mine = redis.call('hexists', KEYS[1], ARGV[2]) == 1
if not mine and redis.call('exists', KEYS[1]) == 1 then return nil end
redis.call('del', KEYS[1])
local first = redis.call('lindex', KEYS[2], 0)
if first then redis.call(ARGV[5], ARGV[4] .. ':' .. first, '0') end
return 1)";

/// A waiter gives up. It does not purge.
inline constexpr std::string_view leave = R"(
local behind = false
for _, each in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do
  if behind then redis.call('zincrby', KEYS[3], string.format('%.0f', -tonumber(ARGV[3])), each) end
  behind = behind or each == ARGV[2]
end
redis.call('zrem', KEYS[3], ARGV[2])
redis.call('lrem', KEYS[2], 0, ARGV[2]))";

}  // namespace fair

}  // namespace holdfast::test::redisson
