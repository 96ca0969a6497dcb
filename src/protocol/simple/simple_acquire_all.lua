-- SPDX-License-Identifier: BSL-1.0
-- simple_acquire_all(lock...; ttl, owner...)
--   -> nil: acquired, all | {i, n >= 0}: the i-th is busy, its holder's TTL | {i, -1}: busy, without a TTL
--   | {i, -2}: the i-th is no lock
-- All or nothing: each as simple_acquire, with an owner of its own; nothing is written before each was found free or
-- mine. Scripts do not roll back: what is refused after the first write takes back what was written.
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
    local value = redis.pcall('getrange', KEYS[i], '0', '256')
    if type(value) == 'table' then
      return string.find(value.err, 'WRONGTYPE', 1, true) and {i, -2} or value
    elseif value ~= ARGV[1 + i] then
      return {i, redis.call('pttl', KEYS[i])}
    end
    mine[#mine + 1] = i
  end
end
for n, i in ipairs(free) do
  local set = redis.pcall('set', KEYS[i], ARGV[1 + i], 'px', px)
  if not set.ok then
    for m = 1, n - 1 do
      redis.pcall('del', KEYS[free[m]])
    end
    return set
  end
end
for _, i in ipairs(mine) do
  -- What is mine is said with a write, whether or not it changes anything. Only a primary may say whose a lock is: a
  -- replica refuses a write, before it looks at the key.
  if redis.call('pttl', KEYS[i]) < ttl then
    redis.call('pexpire', KEYS[i], px)
  else
    local writable = redis.pcall('hdel', KEYS[i], ARGV[1 + i])
    if type(writable) == 'table' and not string.find(writable.err, 'WRONGTYPE', 1, true) then
      return writable
    end
  end
end
return nil
