-- SPDX-License-Identifier: BSL-1.0
-- campaign(lock, token; ttl, owner, value, word, channel[, token_ttl])
--   -> {term}: elected | n >= 0: busy, the leader's TTL | -1: busy, and the leader has no TTL
-- Free: the owner leads, with a TTL. Its value is the field `leader` of the lock, and its term the field `term`. A term
-- is a fencing token, made as by acquire_fenced. The lock has the term, too: the token's key may end first.
-- Mine already (this command was sent twice): the same term again. The value stays, because it may be a newer one.
-- Observers get the term on `channel`. The `word` is as in release. Without the permission they look later.
local ttl, token_ttl = tonumber(ARGV[1]), tonumber(ARGV[6] or '0')
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
if not token_ttl or token_ttl < 0 or token_ttl > 315360000000 or token_ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid token_ttl')
end
if redis.call('exists', KEYS[1]) == 1 then
  if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
    return redis.call('pttl', KEYS[1])
  end
  -- Changes nothing. Only a primary may say whose a lock is: a replica refuses the first write.
  redis.call('hdel', KEYS[1], '')
  local mine = tonumber(redis.call('hget', KEYS[1], 'term') or '')
  if not mine then
    return redis.error_reply('HOLDFAST no lock: a leader without a term')
  end
  if redis.call('pttl', KEYS[1]) < ttl then
    redis.call('pexpire', KEYS[1], ARGV[1])
  end
  return {mine}
end
local newest = tonumber(redis.call('get', KEYS[2]) or '0')
if not newest or newest < 0 or newest > 9007199254740990 or newest % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid token')
end
local time = redis.call('time')
local term = math.max(newest + 1, time[1] * 1000000 + time[2])
local text = string.format('%.0f', term)
if token_ttl > 0 then
  redis.call('set', KEYS[2], text, 'px', string.format('%.0f', token_ttl))
else
  redis.call('set', KEYS[2], text, 'keepttl')
end
redis.call('hset', KEYS[1], ARGV[2], '1', 'leader', ARGV[3], 'term', text)
local set = redis.pcall('pexpire', KEYS[1], ARGV[1])
if set ~= 1 then
  redis.call('hdel', KEYS[1], ARGV[2], 'leader', 'term')
  return set
end
local word = ARGV[4]
if word == 'auto' then
  word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
elseif word == 'both' then
  word = 'publish'
  if redis.REDIS_VERSION_NUM then
    redis.pcall('spublish', ARGV[5], text)
  end
end
redis.pcall(word, ARGV[5], text)
return {term}
