-- SPDX-License-Identifier: BSL-1.0
-- read_acquire(lock, deadline, writers, readers, turn; ttl, owner, word, channel[, stand])
--   -> {1, w, p}: acquired; w clients wait to write, and p peers wait | {1, w, text}: acquired, the error of PUBSUB
--   | {0, n >= 0}: busy, the TTL | {0, -1}: busy, without a TTL | {0, -2}: free, and a writer's turn
-- The owner gets a field beside those of other readers, and the key `deadline` with its TTL.
-- While a living client waits to write, newcomers are kept out. Readers that were asked come in.
-- With stand 1 a client that is kept out joins `readers`. A dead client leaves `writers`.
-- A peer subscribes to `channel`, redisson_rwlock:{lock}. Our clients subscribe to holdfast_waiters:{lock} as well.
-- Rare names are made here, and a rare argument is left out: each argument costs the server half as much as a call.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local owner, channel, stand, client = ARGV[2], ARGV[4], ARGV[5] == '1', nil
local count = ARGV[3] ~= 'publish' and redis.REDIS_VERSION_NUM and 'shardnumsub' or 'numsub'
local open, mode, mine, left, writers = redis.call('exists', KEYS[1], KEYS[3], KEYS[5]) == 0, false, false, -2, 0
if stand or not open then
  client = string.sub(owner, 1, 36)
end
if not open then
  -- Without PUBSUB nobody knows whether a client lives, so there is no door.
  local function is_door_closed()
    while true do
      local first = redis.call('zrange', KEYS[3], '0', '0')[1]
      local wake = first and 'holdfast_wake' .. string.sub(channel, 16) .. ':' .. first
      local heard = first and redis.pcall('pubsub', count, wake)[2]
      if heard ~= 0 then
        return heard
      end
      redis.call('zrem', KEYS[3], first)
    end
  end
  mode, mine = unpack(redis.call('hmget', KEYS[1], 'mode', owner))
  left = redis.call('pttl', KEYS[1])
  local free = left == -2
  -- A turn without a TTL would never end.
  local turn = redis.call('pttl', KEYS[5]) >= 0 and redis.call('get', KEYS[5])
  if free or mode == 'read' and (mine or left >= 0) then
    open = mine or free and not turn or turn == 'r' and redis.call('zscore', KEYS[4], client) == '0'
      or (mode or turn == 'r') and not is_door_closed()
  end
  writers = redis.call('zcard', KEYS[3])
end
if not open then
  if stand then
    local time = redis.call('time')
    redis.pcall('zadd', KEYS[4], string.format('%.0f', time[1] * 1000000 + time[2]), client)
    redis.pcall('pexpire', KEYS[4], '30000')
  end
  return {0, left}
end
if mine then
  -- This write changes nothing. Only a primary may say that a lock is held.
  redis.call('hdel', KEYS[1], '')
else
  redis.call('hset', KEYS[1], 'mode', 'read', owner, '1')
end
local set = left >= ttl or redis.pcall('pexpire', KEYS[1], ARGV[1])
if set == true or set == 1 then
  set = mine and redis.call('pttl', KEYS[2]) >= ttl or redis.pcall('set', KEYS[2], '1', 'px', ARGV[1])
end
if type(set) == 'table' and set.err then
  redis.call('hdel', KEYS[1], mine and '' or owner, mode and '' or 'mode')
  return set
end
if stand then
  redis.pcall('zrem', KEYS[4], client)
end
local heard = redis.pcall('pubsub', count, channel)
local peers = heard.err or heard[2]
if peers ~= 0 and not heard.err then
  peers = peers - redis.call('pubsub', count, 'holdfast_waiters' .. string.sub(channel, 16))[2]
end
return {1, writers, peers}
