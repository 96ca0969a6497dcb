-- SPDX-License-Identifier: BSL-1.0
-- acquire_all(lock...; ttl, owner...)
--   -> nil: acquired, all | {i, n >= 0}: the i-th is busy, its holder's TTL | {i, -1}: busy, without a TTL
--   | {i, -2}: the i-th is no lock
-- All or nothing: each as acquire, with an owner of its own; nothing is written before each was found free or mine.
-- Scripts do not roll back: what is refused after the first write takes back what was written.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local px = string.format('%.0f', ttl)
local free, mine = {}, {}
for i = 1, #KEYS do
  if redis.call('exists', KEYS[i]) == 0 then
    free[#free + 1] = i
  else
    local its = redis.pcall('hexists', KEYS[i], ARGV[1 + i])
    if type(its) == 'table' then
      return string.find(its.err, 'WRONGTYPE', 1, true) and {i, -2} or its
    elseif its == 0 then
      return {i, redis.call('pttl', KEYS[i])}
    end
    mine[#mine + 1] = i
  end
end
if #free == 0 then
  -- Changes nothing. Only a primary may say whose a lock is: a replica refuses the first write.
  redis.call('hdel', KEYS[1], '')
end
-- These first: a full server refuses the first write alone.
for n, i in ipairs(free) do
  local set = redis.pcall('hset', KEYS[i], ARGV[1 + i], '1')
  if type(set) ~= 'table' then
    set = redis.pcall('pexpire', KEYS[i], px)
  end
  if type(set) == 'table' then
    for m = 1, n do
      redis.pcall('hdel', KEYS[free[m]], ARGV[1 + free[m]])
    end
    return set
  end
end
for _, i in ipairs(mine) do
  if redis.call('pttl', KEYS[i]) < ttl then
    redis.call('pexpire', KEYS[i], px)
  end
end
return nil
