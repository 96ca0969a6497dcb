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

}  // namespace holdfast::test::redisson
