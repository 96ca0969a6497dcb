-- SPDX-License-Identifier: BSL-1.0
-- fair_acquire(lock, queue, deadlines; ttl, owner, word[, suspect])
--   -> {1, n[, place]}: acquired; n places stand in the queue, and `place` has left it | {0, n >= 0}: busy, the TTL
--   | {0, -1}: busy, without a TTL | {0, -2, head}: free, and it is the turn of the place `head`
-- A free lock is for the client of the first living place. The places of a client begin as its owners do.
-- The head is told as in fair_release, because the last holder may have died. `suspect` was told before, and did not
-- come. If it is ours, all places of its client in the first 128 leave. A peer's leaves if its deadline is over.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local head
local function drop(place)
  redis.call('lrem', KEYS[2], '1', place)
  redis.pcall('zrem', KEYS[3], place)
end
local function is_heard(place)
  local channel = 'redisson_lock__channel' .. string.sub(KEYS[2], 20) .. ':' .. place
  local new = ARGV[3] ~= 'publish' and redis.REDIS_VERSION_NUM
  local way = new and ARGV[3] ~= 'both' and 'spublish' or 'publish'
  local copy = new and way == 'publish' and redis.pcall('spublish', channel, '00') or 0
  return redis.pcall(way, channel, '0') ~= 0 or copy ~= 0
end
if redis.call('exists', KEYS[1], KEYS[2]) > 0 then
  local left = redis.call('pttl', KEYS[1])
  if left ~= -2 and redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
    return {0, left}
  elseif left ~= -2 then
    -- This write changes nothing. Only a primary may say that a lock is held.
    redis.call('hdel', KEYS[1], '')
    if left < ttl then
      redis.call('pexpire', KEYS[1], ARGV[1])
    end
    return {1, tonumber(redis.pcall('llen', KEYS[2])) or 0}
  end
  for dropped = 0, 32 do
    head = redis.pcall('lrange', KEYS[2], '0', '0')[1]
    local client = head and string.sub(head, 1, 36)
    if not head or client == string.sub(ARGV[2], 1, 36) then
      break
    end
    local time, deadline = redis.call('time'), tonumber(redis.pcall('zscore', KEYS[3], head)) or 0
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local awaited, suspected = string.sub(head, 15, 15) ~= '8' and deadline > now, head == ARGV[4]
    local heard = (awaited or not suspected) and is_heard(head)
    if awaited and not heard and deadline > now + 5000 then
      redis.pcall('zadd', KEYS[3], 'xx', string.format('%.0f', now + 5000), head)
    end
    if heard or awaited or dropped == 32 then
      return {0, -2, head}
    end
    local places = suspected and redis.pcall('lrange', KEYS[2], '0', '127') or {head}
    for _, place in ipairs(places) do
      if place == head or string.sub(place, 1, 36) == client and string.sub(place, 15, 15) == '8' then
        drop(place)
      end
    end
  end
end
if head then
  drop(head)
end
redis.call('hset', KEYS[1], ARGV[2], '1')
local set = redis.pcall('pexpire', KEYS[1], ARGV[1])
if set ~= 1 then
  redis.call('hdel', KEYS[1], ARGV[2])
  return set
end
return {1, head and redis.call('llen', KEYS[2]) or 0, head}
