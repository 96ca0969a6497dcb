-- SPDX-License-Identifier: BSL-1.0
-- permits_set(counter, permits; total, word, channel)
--   -> {left, n}: `left` permits are free, n clients received the message
--   | {left, text}: the error of PUBLISH
-- Sets the number of permits to `total`. Permits that are out stay out, so `left` may be negative.
-- A positive number is published. `word` is as in permits_release.
local total = tonumber(ARGV[1])
if not total or total < 1 or total > 2147483647 or total % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid count')
end
local counter = redis.call('get', KEYS[1])
if counter and (not tonumber(counter) or string.format('%.0f', tonumber(counter)) ~= counter) then
  return redis.error_reply('HOLDFAST no lock: a string that is no counter')
end
local left = total - redis.call('zcard', KEYS[2])
if counter then
  -- The key keeps the TTL that somebody has given it.
  redis.call('incrby', KEYS[1], left - counter)
else
  redis.call('set', KEYS[1], left)
end
if left <= 0 then
  return {left, 0}
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
return {left, refused and refused.err or math.max(copy, told)}
