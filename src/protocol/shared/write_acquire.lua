-- SPDX-License-Identifier: BSL-1.0
-- write_acquire(lock, writers, readers, turn; ttl, owner, word, tagged[, stand])
--   -> {1}: acquired | {0, n >= 0, rank}: busy, the TTL | {0, -1, rank}: busy, without a TTL
--   | {0, -2, rank}: free, and other clients come first
-- The owner, which ends with :write, gets the only field. A turn keeps the lock for the client whose turn it is.
-- `tagged` is {lock}. Rare names are made of it, and a rare argument is left out, as in read_acquire.
-- A reader without a key {lock}:field:rwlock_timeout:k is dead. A lock of dead readers is free, up to 64 of them.
-- A client that is kept out joins `writers`: with stand 1 at the end, with 2 at the front. `rank`: clients before it,
-- or -1 without `stand`. Without it living clients that wait come first, and dead ones leave their sets.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local owner, tagged, stand, client = ARGV[2], ARGV[4], ARGV[5], nil
local alone, left = redis.call('exists', KEYS[1], KEYS[2], KEYS[3], KEYS[4]) == 0, -2
local open = alone
if not alone then
  local function is_a_reader_alive()
    local fields = redis.call('hlen', KEYS[1]) <= 65 and redis.call('hgetall', KEYS[1]) or {'many'}
    for i = 1, #fields, 2 do
      local holds = fields[i] == 'mode' and 0 or string.find(fields[i], ':', 1, true) and tonumber(fields[i + 1])
      -- A field that is no reader's may be somebody's data.
      for k = 1, holds and math.min(holds, 64) or 1 do
        if not holds or redis.pcall('exists', tagged .. ':' .. fields[i] .. ':rwlock_timeout:' .. k) ~= 0 then
          return true
        end
      end
    end
  end
  -- Without PUBSUB nobody knows whether a client lives, so nobody waits.
  local count = ARGV[3] ~= 'publish' and redis.REDIS_VERSION_NUM and 'shardnumsub' or 'numsub'
  local function is_awaited(set)
    while true do
      local first = redis.pcall('zrange', set, '0', '0')[1]
      local heard = first and redis.pcall('pubsub', count, 'holdfast_wake:' .. tagged .. ':' .. first)[2]
      if heard ~= 0 then
        return heard
      end
      redis.call('zrem', set, first)
    end
  end
  local mode, mine = unpack(redis.call('hmget', KEYS[1], 'mode', owner))
  left = redis.call('pttl', KEYS[1])
  if mine then
    -- This write changes nothing. Only a primary may say that a lock is held.
    redis.call('hdel', KEYS[1], '')
    if left < ttl then
      redis.call('pexpire', KEYS[1], ARGV[1])
    end
    return {1}
  elseif mode == 'read' and left >= 0 and not is_a_reader_alive() then
    redis.call('del', KEYS[1])
    left = -2
  end
  -- A turn without a TTL would never end.
  local turn = redis.call('pttl', KEYS[4]) >= 0 and redis.call('get', KEYS[4])
  client = string.sub(owner, 1, 36)
  open = left == -2 and (turn == client or not turn and (stand or not (is_awaited(KEYS[2]) or is_awaited(KEYS[3]))))
end
if open then
  redis.call('hset', KEYS[1], 'mode', 'write', owner, '1')
  local set = redis.pcall('pexpire', KEYS[1], ARGV[1])
  if set ~= 1 then
    redis.call('hdel', KEYS[1], 'mode', owner)
    return set
  end
  if not alone then
    redis.pcall('zrem', KEYS[2], client)
    redis.pcall('del', KEYS[4])
  end
  return {1}
end
local rank
if stand then
  if stand == '2' then
    redis.pcall('zadd', KEYS[2], '0', client)
  else
    local time = redis.call('time')
    redis.pcall('zadd', KEYS[2], 'nx', string.format('%.0f', time[1] * 1000000 + time[2]), client)
  end
  redis.pcall('pexpire', KEYS[2], '30000')
  rank = tonumber(redis.pcall('zrank', KEYS[2], client))
end
return {0, left, rank or -1}
