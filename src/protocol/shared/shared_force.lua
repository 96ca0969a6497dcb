-- SPDX-License-Identifier: BSL-1.0
-- shared_force(lock; word, channel)
--   -> 1: all holds were broken | text: the same, the error of PUBLISH | 0: there was none
-- A lock is a hash with the field `mode`. Its other fields have a colon, and a count as their value. Anything else may
-- be somebody's data, and is left alone. Readers' deadlines end by themselves.
-- Everybody is told 1 on `channel`. `word` is as in release.
local mode = redis.call('hget', KEYS[1], 'mode')
local fields = mode and redis.call('hgetall', KEYS[1]) or {}
local strange = mode and mode ~= 'read' and mode ~= 'write' or not mode and redis.call('exists', KEYS[1]) == 1
for i = 1, #fields, 2 do
  strange = strange or fields[i] ~= 'mode' and not (string.find(fields[i], ':', 1, true) and tonumber(fields[i + 1]))
end
if strange then
  return redis.error_reply('HOLDFAST no lock: a hash of other fields')
end
if redis.call('del', KEYS[1]) == 0 then
  return 0
end
local new = ARGV[1] ~= 'publish' and redis.REDIS_VERSION_NUM
local copy = new and ARGV[1] == 'both' and redis.pcall('spublish', ARGV[2], '01') or 0
local told = redis.pcall(new and ARGV[1] ~= 'both' and 'spublish' or 'publish', ARGV[2], '1')
local refused = type(told) == 'table' and told or type(copy) == 'table' and copy
return refused and refused.err or 1
