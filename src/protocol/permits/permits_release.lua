-- permits_release(counter, permits, door; word, channel, id...)
--   -> {returned, n}: so many came back, n receivers were told | {returned, text}: why nobody was told
--   | nil: not all of them were held; those that were have come back
-- A door that has the first of several ids is opened. The channel is told of what is left.
-- The word is publish, spublish, auto (spublish where the server has it), or both (publish, and spublish likewise).
-- For both, a 0 before the number on the sharded channel says that it is published as well. n is the larger number.
-- A missing counter stays missing: the next acquire sets it.
local counter = redis.call('get', KEYS[1])
local left = tonumber(counter or 0)
if not left or left % 1 ~= 0 then
  return redis.error_reply('HOLDFAST no lock: a string that is no counter')
end
local opened = ARGV[4] and redis.call('get', KEYS[3]) == ARGV[3] and redis.pcall('del', KEYS[3]) == 1
local returned = redis.call('zrem', KEYS[2], unpack(ARGV, 3))
if returned > 0 then
  left = counter and redis.call('incrby', KEYS[1], returned) or returned
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
