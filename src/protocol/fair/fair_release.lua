-- SPDX-License-Identifier: BSL-1.0
-- fair_release(lock, queue, deadlines; word, owner[, next, ttl])
--   -> {1, head, n}: freed; the place `head` was told, and n receivers heard it; '': nobody stands
--   | {1, head, text}: the same, the error of PUBLISH
--   | {2, place, 0}: `next` holds it, in the turn of `place`, which has left the queue; '': nobody stood, or this is a
--   second copy | nil: not this owner's
-- `next` is a fresh field of the same client. It holds the lock if the first living place is one of its client.
-- The head is told 0 on redisson_lock__channel:{lock}:place. Dead places leave the queue, up to 32. One of ours is dead
-- if nobody hears the message. A peer queues first and subscribes then, so an unheard one is dead at its deadline. That
-- is cut to 5 s from now. A place that hears stays after its deadline, too. `word` is as in release.
local next, ttl, place, told = ARGV[3], tonumber(ARGV[4]), nil, 0
if next and (not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0) then
  return redis.error_reply('HOLDFAST invalid ttl')
end
-- A slot may be moved meanwhile. A lock whose last field goes could not be set again, so `next` comes before that. The
-- first write changes nothing then: only a primary may say whose the lock is.
local held = redis.call('hdel', KEYS[1], next and '' or ARGV[2])
if next then
  held = redis.call('hexists', KEYS[1], ARGV[2])
end
if held == 0 then
  if not next or redis.call('hexists', KEYS[1], next) == 0 then
    return nil
  elseif redis.call('pttl', KEYS[1]) < ttl then
    redis.call('pexpire', KEYS[1], ARGV[4])
  end
  return {2, '', 0}
end
local function tell(place)
  local channel = 'redisson_lock__channel' .. string.sub(KEYS[2], 20) .. ':' .. place
  local new = ARGV[1] ~= 'publish' and redis.REDIS_VERSION_NUM
  local way = new and ARGV[1] ~= 'both' and 'spublish' or 'publish'
  local copy = new and way == 'publish' and redis.pcall('spublish', channel, '00') or 0
  local heard = redis.pcall(way, channel, '0')
  local refused = type(heard) == 'table' and heard or type(copy) == 'table' and copy
  return refused and refused.err or math.max(copy, heard)
end
local function drop()
  redis.call('lrem', KEYS[2], '1', place)
  redis.pcall('zrem', KEYS[3], place)
end
for dropped = 0, redis.call('exists', KEYS[2]) * 32 do
  place = redis.pcall('lrange', KEYS[2], '0', '0')[1]
  if not place or next and string.sub(place, 1, 36) == string.sub(next, 1, 36) then
    break
  end
  local time, deadline = redis.call('time'), tonumber(redis.pcall('zscore', KEYS[3], place)) or 0
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local awaited = string.sub(place, 15, 15) ~= '8' and deadline > now
  told = tell(place)
  if awaited and told == 0 and deadline > now + 5000 then
    redis.pcall('zadd', KEYS[3], 'xx', string.format('%.0f', now + 5000), place)
  end
  if told ~= 0 or awaited or dropped == 32 then
    if next then
      redis.call('hdel', KEYS[1], ARGV[2])
    end
    return {1, place, told}
  end
  drop()
end
if not next then
  return {1, '', 0}
end
redis.call('hset', KEYS[1], next, '1')
local set = redis.pcall('pexpire', KEYS[1], ARGV[4])
redis.call('hdel', KEYS[1], ARGV[2], set ~= 1 and next or '')
if set ~= 1 then
  return set
end
if place then
  drop()
end
return {2, place or '', 0}
