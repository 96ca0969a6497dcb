-- SPDX-License-Identifier: BSL-1.0
-- simple_force_release(lock; word, channel) -> 1: somebody's hold was broken | text: the same, why nobody was told
-- | 0: there was none
-- The word is publish, spublish, auto (spublish where the server has it), or both (publish, and spublish likewise).
-- For both, 00 on the sharded channel says that 0 is published as well: a client that listens on both ignores it.
-- A lock is a short string with a TTL, whoever wrote it. A long one, or one without a TTL, may be somebody's data (a
-- semaphore's or a latch's counter, a bucket), and is left alone.
if #redis.call('getrange', KEYS[1], '0', '256') > 256 then
  return redis.error_reply('HOLDFAST no lock: a long string')
end
if redis.call('pttl', KEYS[1]) == -1 then
  return redis.error_reply('HOLDFAST no lock: a string without a TTL')
end
if redis.call('del', KEYS[1]) == 0 then
  return 0
end
local word, sharded = ARGV[1]
if word == 'auto' then
  word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
elseif word == 'both' then
  word = 'publish'
  if redis.REDIS_VERSION_NUM then
    sharded = redis.pcall('spublish', ARGV[2], '00')
  end
end
local told = redis.pcall(word, ARGV[2], '0')
local refused = type(told) == 'table' and told or type(sharded) == 'table' and sharded
return refused and refused.err or 1
