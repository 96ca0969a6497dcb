-- SPDX-License-Identifier: BSL-1.0
-- simple_acquire(lock[, marker]; ttl, owner[, vote])
--   -> nil: acquired | n >= 0: busy, the holder's TTL | -1: busy, without a TTL
-- Free: the key is the owner's, with a TTL. Mine already (this command was sent twice): as acquired. A stranger's:
-- nothing changes. No more of the value is read than tells it from an owner, because it may be somebody's data. Numbers
-- are written as text: a conversion costs Redis more than the command.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
-- One of several primaries, which votes only while its marker says so.
if KEYS[2] and redis.call('get', KEYS[2]) ~= ARGV[3] then
  return redis.error_reply('HOLDFAST no vote')
end
local set = redis.pcall('set', KEYS[1], ARGV[2], 'nx', 'px', ARGV[1])
if set and set.ok then
  return nil
end
local mine = redis.call('getrange', KEYS[1], '0', '256') == ARGV[2]
local left = redis.call('pttl', KEYS[1])
if left == -2 then
  return set or redis.error_reply('HOLDFAST refused to set')
end
if not mine then
  return left
end
-- What is mine is said with a write, whether or not it changes anything. Only a primary may say whose a lock is: a
-- replica refuses a write, before it looks at the key.
if left < ttl then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
local writable = redis.pcall('hdel', KEYS[1], ARGV[2])
if type(writable) == 'table' and not string.find(writable.err, 'WRONGTYPE', 1, true) then
  return writable
end
return nil
