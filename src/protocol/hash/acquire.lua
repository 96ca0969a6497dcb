-- SPDX-License-Identifier: BSL-1.0
-- acquire(lock[, marker]; ttl, owner[, vote])
--   -> nil: acquired | n >= 0: busy, the holder's TTL | -1: busy, and the holder has no TTL
--   | n < -1: busy, the holder's TTL is -2 - n, and its field is not of a holdfast client (UUID version 8)
-- Free: the owner holds it once, with a TTL. Mine already (this command was sent twice): as acquired. A stranger's:
-- nothing changes. Numbers are written as text: a conversion costs Redis more than the command. Scripts do not roll
-- back: where PEXPIRE is refused, to a user without it or for a text that is a number in Lua alone, the first write is
-- taken back.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
-- One of several primaries, which votes only while its marker says so.
if KEYS[2] and redis.call('get', KEYS[2]) ~= ARGV[3] then
  return redis.error_reply('HOLDFAST no vote')
end
if redis.call('exists', KEYS[1]) == 0 then
  redis.call('hset', KEYS[1], ARGV[2], '1')
  local set = redis.pcall('pexpire', KEYS[1], ARGV[1])
  if set ~= 1 then
    redis.call('hdel', KEYS[1], ARGV[2])
    return set
  end
  return nil
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  local left = redis.call('pttl', KEYS[1])
  -- A user who may not read the field takes the holder for a holdfast client.
  local holder = redis.pcall('hlen', KEYS[1]) == 1 and redis.pcall('hgetall', KEYS[1])[1]
  return holder and string.sub(holder, 15, 15) ~= '8' and -2 - left or left
end
-- Changes nothing. Only a primary may say whose a lock is: a replica refuses the first write.
redis.call('hdel', KEYS[1], '')
if redis.call('pttl', KEYS[1]) < ttl then
  redis.call('pexpire', KEYS[1], ARGV[1])
end
return nil
