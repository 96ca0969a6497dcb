-- SPDX-License-Identifier: BSL-1.0
-- release(lock; word, channel, owner) -> n >= 0: freed, n receivers were told | text: freed, why nobody was told
-- | nil: not this owner's
-- The word is publish, spublish, auto (spublish where the server has it), or both (publish, and spublish likewise).
-- For both, 00 on the sharded channel says that 0 is published as well: a client that listens on both ignores it.
-- Then n is the larger of the two numbers: such a client counts once.
-- A script does not undo what it has done: where PUBLISH is refused, the lock is free all the same.
-- Frees however often it is held: with its last field the key goes too.
if redis.call('hdel', KEYS[1], ARGV[3]) == 0 then
  return nil
end
local word = ARGV[1]
if word == 'auto' then
  word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
elseif word == 'both' then
  local sharded = redis.REDIS_VERSION_NUM and redis.pcall('spublish', ARGV[2], '00') or 0
  local told = redis.pcall('publish', ARGV[2], '0')
  local refused = type(told) == 'table' and told or type(sharded) == 'table' and sharded
  return refused and refused.err or math.max(sharded, told)
end
local told = redis.pcall(word, ARGV[2], '0')
return type(told) == 'table' and told.err or told
