-- SPDX-License-Identifier: BSL-1.0
-- fair_stand(lock, queue, deadlines; word, client, number...)
--   -> {left, n}: the TTL of the lock (-1: none, -2: it is free), and how many places stand in the queue
-- The places client:number stand, in this order. A place that stands keeps its position, and the others join the end.
-- The other places of the client leave. Their numbers are 1000000000 to 1000000015. So a second copy changes nothing.
-- A deadline is 5 s from now, and 300 s more for each peer before it: a peer that leaves takes 300 s from all of them.
-- Behind the first 128 places a place stands if it has a deadline. The head of a free lock is told as in fair_release.
if #ARGV < 2 or #ARGV > 18 then
  return redis.error_reply('HOLDFAST invalid count')
end
local function is_heard(place)
  local channel = 'redisson_lock__channel' .. string.sub(KEYS[2], 20) .. ':' .. place
  local new = ARGV[1] ~= 'publish' and redis.REDIS_VERSION_NUM
  local way = new and ARGV[1] ~= 'both' and 'spublish' or 'publish'
  local copy = new and way == 'publish' and redis.pcall('spublish', channel, '00') or 0
  return redis.pcall(way, channel, '0') ~= 0 or copy ~= 0
end
-- This write changes nothing. Only a primary may say who stands.
redis.call('hdel', KEYS[1], '')
local time = redis.call('time')
local now, before, peers = time[1] * 1000 + math.floor(time[2] / 1000), {}, 0
local front = redis.pcall('lrange', KEYS[2], '0', '127')
for _, place in ipairs(front) do
  before[place] = peers
  peers = peers + (string.sub(place, 15, 15) ~= '8' and 1 or 0)
end
local function stands(place)
  return before[place] or #front == 128 and redis.pcall('zscore', KEYS[3], place)
end
local stays, new, scores, gone = {}, {}, {}, {}
for i = 3, #ARGV do
  local place = ARGV[2] .. ':' .. ARGV[i]
  stays[place] = true
  new[#new + 1] = not stands(place) and place or nil
  scores[2 * i - 5] = string.format('%.0f', now + 5000 + 300000 * (before[place] or peers))
  scores[2 * i - 4] = place
end
for number = 1000000000, 1000000015 do
  local place = ARGV[2] .. ':' .. string.format('%.0f', number)
  gone[#gone + 1] = not stays[place] and place or nil
  if not stays[place] and stands(place) then
    redis.pcall('lrem', KEYS[2], '0', place)
  end
end
redis.pcall('zrem', KEYS[3], unpack(gone))
if #scores > 0 then
  redis.pcall('zadd', KEYS[3], unpack(scores))
  if #new > 0 then
    redis.pcall('rpush', KEYS[2], unpack(new))
  end
  redis.pcall('pexpire', KEYS[2], '86400000')
  redis.pcall('pexpire', KEYS[3], '86400000')
end
local left = redis.call('pttl', KEYS[1])
for _ = 1, left == -2 and 32 or 0 do
  local place = redis.pcall('lrange', KEYS[2], '0', '0')[1]
  local deadline = place and tonumber(redis.pcall('zscore', KEYS[3], place)) or 0
  local awaited = place and string.sub(place, 15, 15) ~= '8' and deadline > now
  if not place or is_heard(place) then
    break
  elseif awaited then
    if deadline > now + 5000 then
      redis.pcall('zadd', KEYS[3], 'xx', string.format('%.0f', now + 5000), place)
    end
    break
  end
  redis.pcall('lrem', KEYS[2], '1', place)
  redis.pcall('zrem', KEYS[3], place)
end
return {left, tonumber(redis.pcall('llen', KEYS[2])) or 0}
