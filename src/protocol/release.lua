-- release(lock; word, channel, owner, count, ttl[, if_none])
--   -> n >= 0: freed, n receivers were told | -1: still held, `count` times | nil: not this owner's
-- The word is publish, spublish, auto (spublish where the server has it), or both (publish, and spublish likewise).
-- The count is absolute and is never raised, so that a repeated send counts once. 0 frees: with its last field the key
-- goes too.
-- What stays held has its TTL raised to ttl if it is shorter, and set to if_none (default: ttl) if there is none.
if ARGV[4] == '0' then
  if redis.call('hdel', KEYS[1], ARGV[3]) == 0 then
    return nil
  end
  local word = ARGV[1]
  if word == 'auto' then
    word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
  elseif word == 'both' then
    word = 'publish'
    if redis.REDIS_VERSION_NUM then
      redis.call('spublish', ARGV[2], '0')
    end
  end
  return redis.call(word, ARGV[2], '0')
end
local want = tonumber(ARGV[4])
local ttl = tonumber(ARGV[5])
local if_none = tonumber(ARGV[6] or ARGV[5])
if not want or want < 1 or want > 2147483647 or want ~= math.floor(want) then
  return redis.error_reply('HOLDFAST invalid count')
end
if not ttl or ttl < 1 or ttl > 86400000 or ttl ~= math.floor(ttl)
  or not if_none or if_none < ttl or if_none > 86400000 or if_none ~= math.floor(if_none) then
  return redis.error_reply('HOLDFAST invalid ttl')
end
-- Changes nothing. Only a primary may say whose a lock is: a replica refuses the first write, before it looks at the
-- key. A full server does not refuse what follows the first write of a script, so that it lowers the count as well.
redis.call('hdel', KEYS[1], '')
local count = redis.call('hget', KEYS[1], ARGV[3])
if not count then
  return nil
end
if not string.find(count, '^-?%d+$') then
  return redis.error_reply('HOLDFAST corrupt count')
end
if tonumber(count) > want then
  redis.call('hset', KEYS[1], ARGV[3], string.format('%.0f', want))
end
local left = redis.call('pttl', KEYS[1])
if left < ttl then
  redis.call('pexpire', KEYS[1], string.format('%.0f', left < 0 and if_none or ttl))
end
return -1
