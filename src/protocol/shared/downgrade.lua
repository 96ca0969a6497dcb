-- SPDX-License-Identifier: BSL-1.0
-- downgrade(lock, deadline, readers, turn; ttl, owner, word, channel, reserve)
--   -> 1: the owner reads, or did already | text: it reads, the error of PUBLISH | 0: it does not hold the lock
-- The field owner:write becomes the reader's field `owner`, and nobody can write in between.
-- The TTLs of lock and `deadline` are raised to ttl if they are shorter.
-- All clients that wait to read are asked, as in write_release. Everybody is told 1 on `channel`.
local ttl, reserve = tonumber(ARGV[1]), tonumber(ARGV[5])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0
  or not reserve or reserve < 1 or reserve > 86400000 or reserve % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local owner, writer = ARGV[2], ARGV[2] .. ':write'
-- This write changes nothing. Only a primary may say whose a lock is, and a full server refuses a first write alone.
redis.call('hdel', KEYS[1], '')
local mode, reads, writes = unpack(redis.call('hmget', KEYS[1], 'mode', owner, writer))
local done = reads and mode == 'read'
if not done and not (writes and mode == 'write') then
  return 0
end
if redis.call('pttl', KEYS[1]) < ttl then
  redis.call('pexpire', KEYS[1], ARGV[1])
end
if redis.call('pttl', KEYS[2]) < ttl then
  redis.call('set', KEYS[2], '1', 'px', ARGV[1])
end
if done then
  return 1
end
redis.call('hset', KEYS[1], 'mode', 'read', owner, '1')
redis.call('hdel', KEYS[1], writer)
local readers, scores = redis.pcall('zrange', KEYS[3], '0', '999', 'withscores'), {}
for i = 1, #readers, 2 do
  if readers[i + 1] == '0' then
    redis.pcall('zrem', KEYS[3], readers[i])
  else
    scores[#scores + 1] = '0'
    scores[#scores + 1] = readers[i]
  end
end
if #scores > 0 then
  redis.pcall('zadd', KEYS[3], unpack(scores))
  redis.pcall('pexpire', KEYS[3], '30000')
  redis.pcall('set', KEYS[4], 'r', 'px', ARGV[5])
end
local new = ARGV[3] ~= 'publish' and redis.REDIS_VERSION_NUM
local copy = new and ARGV[3] == 'both' and redis.pcall('spublish', ARGV[4], '01') or 0
local told = redis.pcall(new and ARGV[3] ~= 'both' and 'spublish' or 'publish', ARGV[4], '1')
local refused = type(told) == 'table' and told or type(copy) == 'table' and copy
return refused and refused.err or 1
