// SPDX-License-Identifier: BSL-1.0
#pragma once

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

}  // namespace holdfast::test::redisson
