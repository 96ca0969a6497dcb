-- SPDX-License-Identifier: BSL-1.0
-- resign(lock; word, channel, observers, owner)
--   -> n >= 0: freed, and n candidates received the message | text: freed, the error of PUBLISH | nil: not this owner's
-- Value and term go with the owner. The message is 0, on both channels. The `word` is as in release.
if redis.call('hdel', KEYS[1], ARGV[4]) == 0 then
  return nil
end
redis.call('hdel', KEYS[1], 'leader', 'term')
local word, sharded, refused = ARGV[1]
if word == 'auto' then
  word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
elseif word == 'both' then
  word, sharded = 'publish', redis.REDIS_VERSION_NUM
end
local told = {}
for i = 2, 3 do
  local copy = sharded and redis.pcall('spublish', ARGV[i], '00') or 0
  local own = redis.pcall(word, ARGV[i], '0')
  refused = refused or type(own) == 'table' and own or type(copy) == 'table' and copy
  told[i] = refused or math.max(own, copy)
end
return refused and refused.err or told[2]
