-- SPDX-License-Identifier: BSL-1.0
-- shared_renew((lock, deadline)...; ttl..., owner...[, if_none...])
--   -> for each 1: confirmed | 0: not this owner's any more | -1: the owner's, but the lock is not in its mode
-- An owner that ends with :write writes, and its second key is the lock again. Other owners read.
-- The TTLs of lock and `deadline` are raised to ttl if they are shorter. A lock without one gets if_none, or else ttl.
-- A lost `deadline` is made again: without it a writer would take the reader for dead.
local n = #KEYS / 2
for i = 1, n do
  local ttl, if_none = tonumber(ARGV[i]), tonumber(ARGV[2 * n + i] or ARGV[i])
  if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0
    or not if_none or if_none < ttl or if_none > 86400000 or if_none % 1 ~= 0 then
    return redis.error_reply('HOLDFAST invalid ttl')
  end
end
-- A key of another type must not keep the others from being renewed. Any other refusal says nothing about the holders.
local function refused(answer)
  return type(answer) == 'table' and answer.err and not string.find(answer.err, 'WRONGTYPE', 1, true)
end
-- This write changes nothing. Only a primary may say whose a lock is, and a full server refuses a first write alone.
local answer = redis.pcall('hdel', KEYS[1], '')
local confirmed = {}
for i = 1, n do
  local lock, deadline, owner = KEYS[2 * i - 1], KEYS[2 * i], ARGV[n + i]
  local found = refused(answer) and answer or redis.pcall('hmget', lock, 'mode', owner)
  if refused(found) then
    return found
  end
  local mode = string.sub(owner, -6) == ':write' and 'write' or 'read'
  confirmed[i] = found[2] and (found[1] == mode and 1 or -1) or 0
  if confirmed[i] == 1 then
    local left = redis.call('pttl', lock)
    local ttl = left < 0 and ARGV[2 * n + i] or ARGV[i]
    answer = left < tonumber(ttl) and redis.pcall('pexpire', lock, ttl) or 1
    if mode == 'read' and redis.call('pttl', deadline) < tonumber(ARGV[i]) and not refused(answer) then
      answer = redis.pcall('set', deadline, '1', 'px', ARGV[i])
    end
    if refused(answer) then
      return answer
    end
  end
end
return confirmed
