-- SPDX-License-Identifier: BSL-1.0
-- election_force(lock; word, channel, observers)
--   -> 1: somebody's hold was broken | text: the same, the error of PUBLISH | 0: there was none
-- The lock is a leader's: a hash of its field, `leader` and `term`. Anything else may be somebody's data, and is left
-- alone. The message is 0, on both channels. The `word` is as in release.
local fields = redis.call('hlen', KEYS[1])
local found, owners = {}, 0
if fields == 3 then
  local all = redis.call('hgetall', KEYS[1])
  for i = 1, #all, 2 do
    if all[i] == 'leader' or all[i] == 'term' then
      found[all[i]] = true
    elseif string.find(all[i], ':') and tonumber(all[i + 1]) then
      owners = owners + 1
    end
  end
end
if fields > 0 and not (owners == 1 and found.leader and found.term) then
  return redis.error_reply('HOLDFAST no lock: a hash of other fields')
end
if redis.call('del', KEYS[1]) == 0 then
  return 0
end
local word, sharded, refused = ARGV[1]
if word == 'auto' then
  word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
elseif word == 'both' then
  word, sharded = 'publish', redis.REDIS_VERSION_NUM
end
for i = 2, 3 do
  local copy = sharded and redis.pcall('spublish', ARGV[i], '00') or 0
  local own = redis.pcall(word, ARGV[i], '0')
  refused = refused or type(own) == 'table' and own or type(copy) == 'table' and copy
end
return refused and refused.err or 1
