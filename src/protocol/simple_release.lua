-- simple_release(lock; channel, owner) -> n >= 0: freed, n receivers were told | nil: not this owner's
if redis.call('getrange', KEYS[1], '0', '256') == ARGV[2] then
  redis.call('del', KEYS[1])
  return redis.call('publish', ARGV[1], '0')
end
-- Changes nothing. Only a primary may say whose a lock is: a replica refuses a write, before it looks at the key.
local writable = redis.pcall('hdel', KEYS[1], ARGV[2])
if type(writable) == 'table' and not string.find(writable.err, 'WRONGTYPE', 1, true) then
  return writable
end
return nil
