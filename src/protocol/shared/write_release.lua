-- SPDX-License-Identifier: BSL-1.0
-- write_release(lock, writers, readers, turn; word, channel, owner, reserve[, place])
--   -> {w, r, n}: freed; w other clients wait to write, r were asked to read, n receivers were told
--   | {w, r, text}: freed, the error of PUBLISH | nil: not this owner's
-- With place 1 the owner's client leaves `writers`, whether or not the owner writes. With 2 it joins their end.
-- All clients that wait to read are asked: theirs is the turn, for `reserve` ms. Those that were asked before are dead.
-- Where none waits, a living writer gets the turn as in read_release. Otherwise everybody is told 1 on `channel`.
-- A client that leaves without a lock gives up its turn, and opens the door that it kept closed.
-- `channel` is redisson_rwlock:{lock}. Rare names are made of it, as in read_acquire.
local reserve, place = tonumber(ARGV[4]), ARGV[5]
if not reserve or reserve < 1 or reserve > 86400000 or reserve % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local client, tag = string.sub(ARGV[3], 1, 36), string.sub(ARGV[2], 16)
local new = ARGV[1] ~= 'publish' and redis.REDIS_VERSION_NUM
local way, count = new and ARGV[1] ~= 'both' and 'spublish' or 'publish', new and 'shardnumsub' or 'numsub'
local function tell(channel, message)
  local copy = new and way == 'publish' and redis.pcall('spublish', channel, '0' .. message) or 0
  local told = redis.pcall(way, channel, message)
  local refused = type(told) == 'table' and told or type(copy) == 'table' and copy
  return refused and refused.err or math.max(copy, told)
end
local held, left = redis.call('hdel', KEYS[1], ARGV[3]) == 1 and redis.call('hdel', KEYS[1], 'mode') >= 0, false
if place == '1' then
  left = redis.pcall('zrem', KEYS[2], client) == 1
  left = redis.pcall('get', KEYS[4]) == client and redis.pcall('del', KEYS[4]) == 1 or left
end
if not held and (not left or redis.call('exists', KEYS[1], KEYS[4]) > 0) then
  if left and redis.call('exists', KEYS[2]) == 0 and redis.call('exists', KEYS[3]) == 1 then
    tell(ARGV[2], '1')
  end
  return nil
end
local waiting, first, behind, told, asked, scores = redis.call('exists', KEYS[2], KEYS[3]) > 0, nil, 1, 0, 0, {}
local readers = waiting and redis.pcall('zrange', KEYS[3], '0', '999', 'withscores') or {}
for i = 1, #readers, 2 do
  if readers[i + 1] == '0' then
    redis.pcall('zrem', KEYS[3], readers[i])
  else
    asked = asked + 1
    scores[2 * asked - 1], scores[2 * asked] = '0', readers[i]
  end
end
if asked > 0 then
  redis.pcall('zadd', KEYS[3], unpack(scores))
  redis.pcall('pexpire', KEYS[3], '30000')
  redis.pcall('set', KEYS[4], 'r', 'px', ARGV[4])
elseif waiting then
  redis.pcall('del', KEYS[4])
  repeat
    first, behind = redis.pcall('zpopmin', KEYS[2])[1], math.min(behind + 1, 9)
    local wake = first and 'holdfast_wake' .. tag .. ':' .. first
    local heard = first and redis.pcall('pubsub', count, wake)[2]
    if first and heard ~= 0 then
      redis.pcall('set', KEYS[4], first, 'px', ARGV[4])
      told = tell(wake, 'w')
    end
  until not first or (heard or told) ~= 0
end
local heard = first and redis.pcall('pubsub', count, ARGV[2], 'holdfast_waiters' .. tag)
if not heard or heard.err or heard[2] > heard[4] then
  local all = tell(ARGV[2], '1')
  told = first and told or all
elseif redis.call('exists', KEYS[2], KEYS[3]) > 0 then
  tell(ARGV[2], behind)
end
local writers = (waiting and tonumber(redis.pcall('zcard', KEYS[2])) or 0) + (first and 1 or 0)
if place == '2' then
  local time = redis.call('time')
  redis.pcall('zadd', KEYS[2], 'nx', string.format('%.0f', time[1] * 1000000 + time[2]), client)
  redis.pcall('pexpire', KEYS[2], '30000')
end
return held and {writers, asked, told} or nil
