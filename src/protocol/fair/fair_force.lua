-- SPDX-License-Identifier: BSL-1.0
-- fair_force(lock, queue, deadlines; word)
--   -> 1: somebody's hold was broken | text: the same, the error of PUBLISH | 0: there was none
-- A lock is a hash of one field with a colon in it, whose value is a count. Anything else may be somebody's data, and
-- is left alone. The head of the queue is told as in fair_release. `word` is as in release.
local fields = redis.call('hlen', KEYS[1])
local held = fields == 1 and redis.call('hgetall', KEYS[1])
if fields > 1 or held and not (string.find(held[1], ':') and tonumber(held[2])) then
  return redis.error_reply('HOLDFAST no lock: a hash of other fields')
end
if redis.call('del', KEYS[1]) == 0 then
  return 0
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
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _ = 1, 32 do
  local place = redis.pcall('lrange', KEYS[2], '0', '0')[1]
  if not place then
    break
  end
  local deadline, told = tonumber(redis.pcall('zscore', KEYS[3], place)) or 0, tell(place)
  local awaited = string.sub(place, 15, 15) ~= '8' and deadline > now
  if awaited and told == 0 and deadline > now + 5000 then
    redis.pcall('zadd', KEYS[3], 'xx', string.format('%.0f', now + 5000), place)
  end
  if told ~= 0 or awaited then
    return type(told) == 'string' and told or 1
  end
  redis.pcall('lrem', KEYS[2], '1', place)
  redis.pcall('zrem', KEYS[3], place)
end
return 1
