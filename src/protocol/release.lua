-- release(lock; word, channel, owner) -> n >= 0: freed, n receivers were told | nil: not this owner's
-- The word is publish, spublish, auto (spublish where the server has it), or both (publish, and spublish likewise).
-- Frees however often it is held: with its last field the key goes too.
if redis.call('hdel', KEYS[1], ARGV[3]) == 0 then
  return nil
end
local word = ARGV[1]
if word == 'auto' then
  word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
elseif word == 'both' then
  word = 'publish'
  if redis.REDIS_VERSION_NUM then
    redis.call('spublish', ARGV[2], '0')
  end
end
return redis.call(word, ARGV[2], '0')
