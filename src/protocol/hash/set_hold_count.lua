-- SPDX-License-Identifier: BSL-1.0
-- set_hold_count(lock; ttl, owner, count[, if_none])
--   -> 1: the owner holds it, and is counted so many times | 0: the owner does not hold it
-- The count is absolute, so that a repeated send counts once. Never creates a hold, and never ends one.
-- The TTL is raised to ttl if it is shorter, and set to if_none (default: ttl) if there is none.
local ttl = tonumber(ARGV[1])
local if_none = tonumber(ARGV[4] or ARGV[1])
local want = tonumber(ARGV[3])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0
  or not if_none or if_none < ttl or if_none > 86400000 or if_none % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
if not want or want < 1 or want > 2147483647 or want % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid count')
end
-- Changes nothing. Only a primary may say whose a lock is: a replica refuses the first write, before it looks at the
-- key.
redis.call('hdel', KEYS[1], '')
local count = redis.call('hget', KEYS[1], ARGV[2])
if not count then
  return 0
end
if not string.find(count, '^-?%d+$') then
  return redis.error_reply('HOLDFAST corrupt count')
end
if tonumber(count) ~= want then
  redis.call('hset', KEYS[1], ARGV[2], string.format('%.0f', want))
end
local left = redis.call('pttl', KEYS[1])
if left < ttl then
  redis.call('pexpire', KEYS[1], string.format('%.0f', left < 0 and if_none or ttl))
end
return 1
