-- SPDX-License-Identifier: BSL-1.0
-- permits_acquire(counter, permits, door; ttl, total, door_ms, word, channel, waiters, n..., id...)
--   -> {waiters, left}: all have their permits, `left` are free
--   | {g, ms}: the first g have theirs, too few are free for the next; a permit ends in ms (-1: none is out)
--   | {-1, ms}: another waiter's door keeps these waiters out; it or a permit ends in ms
-- Each waiter gets all of its n permits or none. A second copy of this command gives a waiter no more permits.
-- A missing counter becomes total - out. If too few are free, up to 100 permits that have ended are taken back first.
-- If the first waiter wants several and too few are free, it closes the door for door_ms (0: it does not).
-- Others get nothing meanwhile. The door is a key with the waiter's first id. The waiter's grant opens it.
-- A new counter, a sweep and an opened door publish the number of free permits.
-- The sweep is the last use of the set. If it leaves no permit, a server whose slot moves refuses each later one.
-- Scripts do not roll back: if a command is refused after INCRBY, a second INCRBY undoes the first.
local function integer(text, low, high)
  local n = tonumber(text)
  return n and n >= low and n <= high and n % 1 == 0 and n
end
local ttl, doors = integer(ARGV[1], 1, 86400000), integer(ARGV[3], 0, 86400000)
if not ttl or not doors then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local total, waiters, wanted = integer(ARGV[2], 1, 2147483647), integer(ARGV[6], 1, 100), 0
for k = 7, 6 + (waiters or 0) do
  wanted = wanted + (integer(ARGV[k], 1, 100) or 101)
end
if not total or not waiters or wanted > 100 or #ARGV ~= 6 + waiters + wanted then
  return redis.error_reply('HOLDFAST invalid count')
end
local ids = 6 + waiters
local first = ARGV[ids + 1]
local counter, door = redis.call('get', KEYS[1]), redis.call('get', KEYS[3])
local left, news = tonumber(counter or total), not counter
if not left or left % 1 ~= 0 then
  return redis.error_reply('HOLDFAST no lock: a string that is no counter')
end
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if not counter then
  left = total - redis.call('zcard', KEYS[2])
  redis.call('set', KEYS[1], left)
end
local ended, swept, gone = {}, {}, {}
if left < wanted then
  ended = redis.call('zrangebyscore', KEYS[2], '-inf', now, 'limit', 0, 100)
  left, news = left + #ended, news or #ended > 0
  for k = 1, #ended do
    swept[ended[k]] = true
  end
end
-- A key without TTL is nobody's door: it would never open.
local shut = door and door ~= first and redis.call('pttl', KEYS[3]) or -1
local spare = shut < 0 and left or 0
local ends, scores = string.format('%.0f', now + ttl), {}
local granted, taken, at = 0, 0, ids
for k = 1, waiters do
  local n, fresh = tonumber(ARGV[6 + k]), 0
  for i = at + 1, at + n do
    fresh = fresh + (not swept[ARGV[i]] and redis.call('zscore', KEYS[2], ARGV[i]) and 0 or 1)
    scores[2 * (i - ids) - 1], scores[2 * (i - ids)] = ends, ARGV[i]
  end
  if fresh > 0 and taken + fresh > spare then
    break
  end
  granted, taken, at = k, taken + fresh, at + n
end
for i = ids + 1, at do
  swept[ARGV[i]] = nil
end
for k = 1, #ended do
  gone[#gone + 1] = swept[ended[k]] and ended[k]
end
local closes = granted == 0 and shut < 0 and doors > 0 and tonumber(ARGV[7]) > 1
    and left + redis.call('zcard', KEYS[2]) - #ended >= tonumber(ARGV[7])
local wait = -1
if granted < waiters then
  -- A door that opens while no permit is free publishes nothing. So a waiter that it keeps out sleeps no longer than
  -- until the next permit ends. Permits that have ended already are published when the door opens.
  local from, at_first = '-inf', #ended
  if shut >= 0 then
    from, at_first = '(' .. now, 0
  end
  local ends_next = redis.call('zrangebyscore', KEYS[2], from, '+inf', 'withscores', 'limit', at_first, 1)[2]
  ends_next = math.min(ends_next or math.huge, granted > 0 and now + ttl or math.huge,
    shut >= 0 and now + shut or math.huge)
  wait = ends_next < math.huge and math.max(0, math.min(ends_next - now, 2^53)) or -1
end
local change, set = #ended - taken
if taken > 0 or #ended > 0 then
  left = redis.call('incrby', KEYS[1], change)
end
if #ended > 0 or taken == 0 and granted > 0 then
  -- This write changes nothing. Only a primary may say that a permit is held, and a full server refuses no second copy.
  set = redis.pcall('zrem', KEYS[2], '')
end
if granted > 0 and type(set) ~= 'table' then
  set = redis.pcall('zadd', KEYS[2], 'gt', unpack(scores, 1, 2 * (at - ids)))
end
if type(set) == 'table' then
  redis.call('incrby', KEYS[1], -change)
  return set
end
if #gone > 0 then
  redis.call('zrem', KEYS[2], unpack(gone))
end
if closes then
  redis.call('set', KEYS[3], first, 'px', ARGV[3])
elseif granted > 0 and door == first then
  news = redis.pcall('del', KEYS[3]) == 1 or news
end
if news and left > 0 then
  local word = ARGV[4]
  if word == 'auto' then
    word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
  elseif word == 'both' then
    word = 'publish'
    if redis.REDIS_VERSION_NUM then
      redis.pcall('spublish', ARGV[5], '0' .. left)
    end
  end
  redis.pcall(word, ARGV[5], left)
end
if granted == waiters then
  return {granted, left}
end
return {granted == 0 and shut >= 0 and -1 or granted, wait}
