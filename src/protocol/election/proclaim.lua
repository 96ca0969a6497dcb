-- SPDX-License-Identifier: BSL-1.0
-- proclaim(lock; owner, value, word, channel)
--   -> n >= 0: the value is the leader's, and n clients received the message | text: the same, the error of PUBLISH
--   | nil: the owner does not lead
-- Observers get the term on `channel`. The `word` is as in release.
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  -- Changes nothing. Only a primary may say whose a lock is: a replica refuses the first write.
  redis.call('hdel', KEYS[1], '')
  return nil
end
redis.call('hset', KEYS[1], 'leader', ARGV[2])
local term = redis.call('hget', KEYS[1], 'term') or '0'
local word, sharded = ARGV[3], 0
if word == 'auto' then
  word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
elseif word == 'both' then
  word = 'publish'
  sharded = redis.REDIS_VERSION_NUM and redis.pcall('spublish', ARGV[4], term) or 0
end
local told = redis.pcall(word, ARGV[4], term)
local refused = type(told) == 'table' and told or type(sharded) == 'table' and sharded
return refused and refused.err or math.max(sharded, told)
