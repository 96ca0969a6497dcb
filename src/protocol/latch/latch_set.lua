-- SPDX-License-Identifier: BSL-1.0
-- latch_set(latch, mark; count, mark_ttl, word, channel)
--   -> {1, n}: the count is set, and n clients received the message | {1, text}: the error of PUBLISH
--   | {0, 0}: it was set before
-- The message is 1. A second copy finds the mark of the first, and returns {1, 0}.
-- `word` is publish, spublish, auto (spublish if the server has it), or both (publish, and spublish if it has it).
-- With both, the message on the sharded channel has a 0 before the number: a second copy.
local count = tonumber(ARGV[1])
if not count or count < 1 or count > 2147483647 or count % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid count')
end
if redis.call('get', KEYS[2]) then
  redis.call('pexpire', KEYS[2], ARGV[2])
  return {1, 0}
end
local left = redis.call('get', KEYS[1])
if left then
  if not tonumber(left) or string.format('%.0f', tonumber(left)) ~= left then
    return redis.error_reply('HOLDFAST no lock: a string that is no counter')
  end
  return {0, 0}
end
redis.call('set', KEYS[1], ARGV[1])
redis.call('set', KEYS[2], ARGV[1], 'px', ARGV[2])
local word, copy = ARGV[3], 0
if word == 'auto' then
  word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
elseif word == 'both' then
  word = 'publish'
  copy = redis.REDIS_VERSION_NUM and redis.pcall('spublish', ARGV[4], '01') or 0
end
local told = redis.pcall(word, ARGV[4], '1')
local refused = type(told) == 'table' and told or type(copy) == 'table' and copy
return {1, refused and refused.err or math.max(copy, told)}
