-- SPDX-License-Identifier: BSL-1.0
-- simple_renew(lock...; ttl..., owner...[, if_none...]) -> for each lock 1: confirmed | 0: not this owner's any more
-- Mine: the TTL is raised to ttl if it is shorter, and set to if_none (default: ttl) if there is none.
-- Else nothing: renewal never creates a key and never shortens a TTL.
local n = #KEYS
for i = 1, n do
  local ttl = tonumber(ARGV[i])
  local if_none = tonumber(ARGV[2 * n + i] or ARGV[i])
  if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0
    or not if_none or if_none < ttl or if_none > 86400000 or if_none % 1 ~= 0 then
    return redis.error_reply('HOLDFAST invalid ttl')
  end
end
-- One key of another type must not keep the others from being renewed; any other refusal says nothing of who holds the
-- locks.
local function refused(answer)
  return type(answer) == 'table' and not string.find(answer.err, 'WRONGTYPE', 1, true)
end
-- What is said of each key is said with a write, whether or not it changes anything. Only a primary may say whose a
-- lock is: a replica refuses a write, before it looks at the key.
local confirmed = {}
for i = 1, n do
  local held = redis.pcall('getrange', KEYS[i], '0', '256')
  if refused(held) then
    return held
  end
  local mine = held == ARGV[n + i]
  local left = mine and redis.call('pttl', KEYS[i])
  local ttl = tonumber(mine and left < 0 and ARGV[2 * n + i] or ARGV[i])
  local written
  if mine and left < ttl then
    written = redis.pcall('pexpire', KEYS[i], string.format('%.0f', ttl))
  else
    written = redis.pcall('hdel', KEYS[i], ARGV[n + i] .. ':')
  end
  if refused(written) then
    return written
  end
  confirmed[i] = mine and 1 or 0
end
return confirmed
