-- SPDX-License-Identifier: BSL-1.0
-- acquire_all_fenced(lock..., token...; ttl, owner...[, token_ttl])
--   -> {0, token...}: acquired, all | {i, n >= 0}: the i-th is busy, its holder's TTL | {i, -1}: busy, without a TTL
--   | {i, -2}: the i-th is no lock | {i, -3}: the i-th has a counter that is no number
-- As acquire_all; each has a fencing token as acquire_fenced gives it, and one that is mine already has its own again.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local px = string.format('%.0f', ttl)
local locks = #KEYS / 2
local token_ttl = tonumber(ARGV[2 + locks] or '0')
if not token_ttl or token_ttl < 0 or token_ttl > 315360000000 or token_ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid token_ttl')
end
local free, mine, said, new = {}, {}, {0}, {}
for i = 1, locks do
  local is_free = redis.call('exists', KEYS[i]) == 0
  if is_free then
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
  local last = redis.pcall('get', KEYS[locks + i])
  if type(last) == 'table' and not string.find(last.err, 'WRONGTYPE', 1, true) then
    return last
  end
  local token = type(last) ~= 'table' and tonumber(last or '0')
  if not token or token < 0 or token > 9007199254740990 or token % 1 ~= 0 then
    return {i, -3}
  end
  if is_free or not last then
    local time = redis.call('time')
    token = math.max(token + 1, time[1] * 1000000 + time[2])
    new[#new + 1] = i
  end
  said[1 + i] = token
end
if #free == 0 then
  -- Changes nothing. Only a primary may say whose a lock is: a replica refuses the first write.
  redis.call('hdel', KEYS[1], '')
end
for _, i in ipairs(new) do
  local text = string.format('%.0f', said[1 + i])
  if token_ttl > 0 then
    redis.call('set', KEYS[locks + i], text, 'px', string.format('%.0f', token_ttl))
  else
    redis.call('set', KEYS[locks + i], text, 'keepttl')
  end
end
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
return said
