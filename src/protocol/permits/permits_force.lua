-- SPDX-License-Identifier: BSL-1.0
-- permits_force(counter, permits; total, word, channel)
--   -> {broken, n}: `broken` permits were out, n clients received the message
--   | {broken, text}: the error of PUBLISH
-- All permits come back. Permits that had ended are not counted as broken. A missing counter becomes `total`.
-- The number of free permits is published. `word` is as in permits_release.
-- Scripts do not roll back: if DEL is refused, a second INCRBY undoes the first.
local total = tonumber(ARGV[1])
if not total or total < 1 or total > 2147483647 or total % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid count')
end
local counter = redis.call('get', KEYS[1])
if counter and (not tonumber(counter) or string.format('%.0f', tonumber(counter)) ~= counter) then
  return redis.error_reply('HOLDFAST no lock: a string that is no counter')
end
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local out = redis.call('zcard', KEYS[2])
local broken = redis.call('zcount', KEYS[2], string.format('(%.0f', now), '+inf')
-- This write changes nothing. It comes first, because a full server refuses a first write alone.
redis.call('zrem', KEYS[2], '')
local left
if counter then
  left = redis.call('incrby', KEYS[1], out)
else
  left = total
  redis.call('set', KEYS[1], left)
end
local gone = redis.pcall('del', KEYS[2])
if type(gone) == 'table' then
  redis.call('incrby', KEYS[1], -out)
  return gone
end
if left <= 0 or out == 0 and counter then
  return {broken, 0}
end
local word, copy = ARGV[2], 0
if word == 'auto' then
  word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
elseif word == 'both' then
  word = 'publish'
  copy = redis.REDIS_VERSION_NUM and redis.pcall('spublish', ARGV[3], '0' .. left) or 0
end
local told = redis.pcall(word, ARGV[3], left)
local refused = type(told) == 'table' and told or type(copy) == 'table' and copy
return {broken, refused and refused.err or math.max(copy, told)}
