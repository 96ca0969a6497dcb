-- SPDX-License-Identifier: BSL-1.0
-- permits_release(counter, permits, door; word, channel, id...); of one id without the door
--   -> {returned, n}: `returned` permits came back, n clients received the message
--   | {returned, text}: the error of PUBLISH
--   | nil: some ids were not held; the others have come back
-- A door that has the first of several ids is opened. The number of free permits is published. If the counter is 0, an
-- opened door publishes the permits that have ended: the next acquire takes them back.
-- `word` is publish, spublish, auto (spublish if the server has it), or both (publish, and spublish if it has it).
-- With both, the message on the sharded channel has a 0 before the number: a second copy. n is then the larger number.
-- A missing counter stays missing: the next acquire sets it.
local counter = redis.call('get', KEYS[1])
local left = tonumber(counter or 0)
if counter and (not left or string.format('%.0f', left) ~= counter) then
  return redis.error_reply('HOLDFAST no lock: a string that is no counter')
end
local opened = ARGV[4] and redis.call('get', KEYS[3]) == ARGV[3] and redis.pcall('del', KEYS[3]) == 1
local returned = redis.call('zrem', KEYS[2], unpack(ARGV, 3))
if returned > 0 then
  left = counter and redis.call('incrby', KEYS[1], returned) or returned
end
if opened and left == 0 then
  local time = redis.call('time')
  left = #redis.call('zrangebyscore', KEYS[2], '-inf', time[1] * 1000 + math.floor(time[2] / 1000), 'limit', 0, 100)
end
local told = 0
if left > 0 and (returned > 0 or opened) then
  local word, copy = ARGV[1], 0
  if word == 'auto' then
    word = redis.REDIS_VERSION_NUM and 'spublish' or 'publish'
  elseif word == 'both' then
    word = 'publish'
    copy = redis.REDIS_VERSION_NUM and redis.pcall('spublish', ARGV[2], '0' .. left) or 0
  end
  told = redis.pcall(word, ARGV[2], left)
  local refused = type(told) == 'table' and told or type(copy) == 'table' and copy
  told = refused and refused.err or math.max(copy, told)
end
if returned < #ARGV - 2 then
  return nil
end
return {returned, told}
