-- SPDX-License-Identifier: BSL-1.0
-- count_down(latch, mark; n, mark_ttl, word, channel)
--   -> {left, n}: the count is `left` now, and n clients received the message | {0, text}: the error of PUBLISH
-- The count ends at 0, and its key with it: the latch is open. Then the message 0 is published.
-- The mark has `left`. A second copy finds it, counts nothing, and returns {left, 0}. The mark then lives longer: each
-- copy that comes within `mark_ttl` of another is known.
-- An open latch is marked as well: it may be set anew between two copies.
-- The mark comes first, so a call that is refused for want of a permission has counted nothing.
-- `word` is as in latch_set.
local n = tonumber(ARGV[1])
if not n or n < 1 or n > 4294967295 or n % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid count')
end
local known = redis.call('get', KEYS[2])
if known then
  redis.call('pexpire', KEYS[2], ARGV[2])
  return {tonumber(known), 0}
end
local count = redis.call('get', KEYS[1])
if count and (not tonumber(count) or string.format('%.0f', tonumber(count)) ~= count) then
  return redis.error_reply('HOLDFAST no lock: a string that is no counter')
end
local left = math.max(tonumber(count or 0) - n, 0)
redis.call('set', KEYS[2], string.format('%.0f', left), 'px', ARGV[2])
if left > 0 then
  redis.call('set', KEYS[1], string.format('%.0f', left), 'keepttl')
  return {left, 0}
end
if not count then
  return {0, 0}
end
redis.call('del', KEYS[1])
local word, copy = ARGV[3], 0
if word == 'auto' then
  word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
elseif word == 'both' then
  word = 'publish'
  copy = redis.REDIS_VERSION_NUM and redis.pcall('spublish', ARGV[4], '00') or 0
end
local told = redis.pcall(word, ARGV[4], '0')
local refused = type(told) == 'table' and told or type(copy) == 'table' and copy
return {0, refused and refused.err or math.max(copy, told)}
