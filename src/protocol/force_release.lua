-- force_release(lock; channel) -> 1: somebody's hold was broken | 0: there was none
-- A lock is a hash of one field with a colon in it, whose value is a count. Anything else may be somebody's data, and
-- is left alone.
local fields = redis.call('hlen', KEYS[1])
local held = fields == 1 and redis.call('hgetall', KEYS[1])
if fields > 1 or held and not (string.find(held[1], ':') and tonumber(held[2])) then
  return redis.error_reply('HOLDFAST no lock: a hash of other fields')
end
if redis.call('del', KEYS[1]) == 0 then
  return 0
end
redis.call('publish', ARGV[1], '0')
return 1
