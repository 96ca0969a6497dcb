-- SPDX-License-Identifier: BSL-1.0
-- renew(lock...; ttl..., owner...[, if_none...]) -> for each lock 1: confirmed | 0: not this owner's any more
--   | -1: the owner's, but not a lock of one owner: the hash has other fields
-- A leader's lock has two more fields, see campaign.
-- Mine: the TTL is raised to ttl if it is shorter, and set to if_none (default: ttl) if there is none.
-- Else nothing: renewal never creates a key and never shortens a TTL. Numbers are passed on as text: a conversion costs
-- Redis nearly as much as a command.
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
local confirmed, written = {}, false
for i = 1, n do
  local mine = redis.pcall('hexists', KEYS[i], ARGV[n + i])
  if refused(mine) then
    return mine
  end
  local fields = mine == 1 and redis.call('hlen', KEYS[i])
  if fields and fields > 1 and not (fields == 3 and redis.call('hexists', KEYS[i], 'term') == 1) then
    confirmed[i] = -1
  elseif mine == 1 then
    local left = redis.call('pttl', KEYS[i])
    local ttl = left < 0 and ARGV[2 * n + i] or ARGV[i]
    if left < tonumber(ttl) then
      local set = redis.pcall('pexpire', KEYS[i], ttl)
      if type(set) == 'table' then
        return set
      end
      written = true
    end
    confirmed[i] = 1
  else
    confirmed[i] = 0
  end
end
-- Changes nothing. Only a primary may say whose a lock is: a replica refuses every write.
if not written then
  local writable = redis.pcall('hdel', KEYS[1], '')
  if refused(writable) then
    return writable
  end
end
return confirmed
