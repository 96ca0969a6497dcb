-- SPDX-License-Identifier: BSL-1.0
-- read_release(lock, deadline, writers, readers, turn; word, channel, owner, reserve[, leave])
--   -> {1, n}: freed, n receivers were told | {1, text}: freed, the error of PUBLISH | {0, 0}: others read
--   | nil: not this owner's
-- With leave 1 the owner's client leaves `readers`, whether or not the owner reads.
-- The last reader gives a living writer its turn, for `reserve` ms, and tells it w on holdfast_wake:{lock}:client.
-- Readers that were asked come first. The last of those that leaves gives the turn as well.
-- Without a writer everybody is told 1 on `channel`. Clients that wait behind one are told 2 there, or up to 9: one
-- more for each dead client that left `writers`. Peers are told 0 there, and so is everybody where no client waits.
-- `word` is as in release. The copy on the sharded channel has a 0 before the message.
-- `channel` is redisson_rwlock:{lock}. Rare names are made of it, as in read_acquire.
local reserve = tonumber(ARGV[4])
if not reserve or reserve < 1 or reserve > 86400000 or reserve % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local new = ARGV[1] ~= 'publish' and redis.REDIS_VERSION_NUM
local way, count = new and ARGV[1] ~= 'both' and 'spublish' or 'publish', new and 'shardnumsub' or 'numsub'
local function tell(channel, message)
  local copy = new and way == 'publish' and redis.pcall('spublish', channel, '0' .. message) or 0
  local told = redis.pcall(way, channel, message)
  local refused = type(told) == 'table' and told or copy ~= 0 and type(copy) == 'table' and copy
  return refused and refused.err or copy == 0 and told or math.max(copy, told)
end
local held, asked = redis.call('hdel', KEYS[1], ARGV[3]) == 1, false
if ARGV[5] == '1' then
  local client = string.sub(ARGV[3], 1, 36)
  asked = redis.pcall('zscore', KEYS[4], client) == '0'
  redis.pcall('zrem', KEYS[4], client)
end
if held and redis.call('hlen', KEYS[1]) > 1 then
  redis.pcall('del', KEYS[2])
  return {0, 0}
elseif held then
  redis.call('del', KEYS[1], KEYS[2])
elseif not asked or redis.call('exists', KEYS[1]) == 1 then
  return nil
end
local told = 0
if redis.call('exists', KEYS[3], KEYS[4], KEYS[5]) == 0 then
  told = tell(ARGV[2], '0')
elseif redis.pcall('get', KEYS[5]) ~= 'r' or redis.pcall('zrange', KEYS[4], '0', '0', 'withscores')[2] ~= '0' then
  local first, tag, behind = nil, string.sub(ARGV[2], 16), 1
  repeat
    first, behind = redis.pcall('zpopmin', KEYS[3])[1], math.min(behind + 1, 9)
    local wake = first and 'holdfast_wake' .. tag .. ':' .. first
    local heard = first and redis.pcall('pubsub', count, wake)[2]
    if first and heard ~= 0 then
      redis.pcall('set', KEYS[5], first, 'px', ARGV[4])
      told = tell(wake, 'w')
    end
  until not first or (heard or told) ~= 0
  local heard = redis.pcall('pubsub', count, ARGV[2], 'holdfast_waiters' .. tag)
  if not first then
    redis.pcall('del', KEYS[5])
    told = tell(ARGV[2], '1')
  elseif heard.err or heard[2] > heard[4] then
    tell(ARGV[2], '0')
  elseif redis.call('exists', KEYS[3], KEYS[4]) > 0 then
    tell(ARGV[2], behind)
  end
end
return held and {1, told} or nil
