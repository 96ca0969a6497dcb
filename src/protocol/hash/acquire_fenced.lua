-- SPDX-License-Identifier: BSL-1.0
-- acquire_fenced(lock, token; ttl, owner[, block[, token_ttl]])
--   -> {token[, spare]}: acquired | n >= 0: busy, the holder's TTL | -1: busy, and the holder has no TTL
--   | n < -1: busy, the holder's TTL is -2 - n, and its field is not of a holdfast client (UUID version 8)
-- As acquire; a new hold gets a fencing token, larger than every one before it: by one, or the server's clock in
-- microseconds, whichever is more, so that it grows on when the key is lost. The token's key gets token_ttl. Without
-- one it keeps the TTL that it has. Mine already (this command was sent twice): the same token again. With a block it
-- gets that many tokens in a row, up to the clock: the reply is the first one, and how many are spare. It gets one
-- alone if some of them may have been given, as after a grant within that time, or if the counter was lost: then there
-- is none, or it began again at 1. A command that was sent twice gets one alone, too.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local block = tonumber(ARGV[3] or '1')
if not block or block < 1 or block > 1000000 or block % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid block')
end
local token_ttl = tonumber(ARGV[4] or '0')
if not token_ttl or token_ttl < 0 or token_ttl > 315360000000 or token_ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid token_ttl')
end
local free = redis.call('exists', KEYS[1]) == 0
if not free then
  if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
    local left = redis.call('pttl', KEYS[1])
    -- A user who may not read the field takes the holder for a holdfast client.
    local holder = redis.pcall('hlen', KEYS[1]) == 1 and redis.pcall('hgetall', KEYS[1])[1]
    return holder and string.sub(holder, 15, 15) ~= '8' and -2 - left or left
  end
  -- Changes nothing. Only a primary may say whose a lock is: a replica refuses the first write.
  redis.call('hdel', KEYS[1], '')
end
local last = redis.call('get', KEYS[2])
local newest = tonumber(last or '0')
if not newest or newest < 0 or newest > 9007199254740990 or newest % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid token')
end
local token, spare = newest, 0
if free or newest == 0 then
  local time = redis.call('time')
  local now = time[1] * 1000000 + time[2]
  token = math.max(newest + 1, now)
  if newest > 1000000000000000 and now - block + 1 > newest then
    token, spare = now - block + 1, block - 1
  end
  local text = string.format('%.0f', token + spare)
  if token_ttl > 0 then
    redis.call('set', KEYS[2], text, 'px', string.format('%.0f', token_ttl))
  else
    redis.call('set', KEYS[2], text, 'keepttl')
  end
end
if free then
  redis.call('hset', KEYS[1], ARGV[2], '1')
  local set = redis.pcall('pexpire', KEYS[1], ARGV[1])
  if set ~= 1 then
    redis.call('hdel', KEYS[1], ARGV[2])
    return set
  end
elseif redis.call('pttl', KEYS[1]) < ttl then
  redis.call('pexpire', KEYS[1], ARGV[1])
end
return ARGV[3] and {token, spare} or {token}
