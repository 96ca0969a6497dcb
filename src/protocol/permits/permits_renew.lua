-- SPDX-License-Identifier: BSL-1.0
-- permits_renew(permits...; claims, n..., ttl..., id...) -> for each claim 1: all of its n permits are held
--   | 0: not all are held, and nothing is changed
-- A permit that has ended is not held, even before it is taken back. The end of a permit never becomes earlier.
-- Each claim has a key, and several claims may have the same key.
local claims, ids = #KEYS, 0
for k = 1, claims do
  local n, ttl = tonumber(ARGV[1 + k]), tonumber(ARGV[1 + claims + k])
  if not n or n < 1 or n > 100 or n % 1 ~= 0 then
    return redis.error_reply('HOLDFAST invalid count')
  elseif not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
    return redis.error_reply('HOLDFAST invalid ttl')
  end
  ids = ids + n
end
if claims ~= tonumber(ARGV[1]) or #ARGV ~= 1 + 2 * claims + ids then
  return redis.error_reply('HOLDFAST invalid count')
end
-- A key of another type must not keep the others from being renewed. Any other refusal says nothing about the permits.
local function refused(answer)
  return type(answer) == 'table' and not string.find(answer.err, 'WRONGTYPE', 1, true)
end
-- This write changes nothing. Only a primary may say that a permit is held, and a full server refuses no renewal.
local writable = redis.pcall('zrem', KEYS[1], '')
if refused(writable) then
  return writable
end
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local confirmed, at = {}, 1 + 2 * claims
for k = 1, claims do
  local n, ends, scores = tonumber(ARGV[1 + k]), string.format('%.0f', now + ARGV[1 + claims + k]), {}
  for i = at + 1, at + n do
    local score = redis.pcall('zscore', KEYS[k], ARGV[i])
    if refused(score) then
      return score
    elseif type(score) == 'string' and tonumber(score) > now then
      scores[#scores + 1] = ends
      scores[#scores + 1] = ARGV[i]
    end
  end
  if #scores == 2 * n then
    local set = redis.pcall('zadd', KEYS[k], 'xx', 'gt', unpack(scores))
    if type(set) == 'table' then
      return set
    end
  end
  confirmed[k] = #scores == 2 * n and 1 or 0
  at = at + n
end
return confirmed
