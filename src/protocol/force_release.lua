-- force_release(lock; channel) -> 1: somebody's hold was broken | 0: there was none
-- HEXISTS first, for its WRONGTYPE: a key that is no lock is left alone.
redis.call('hexists', KEYS[1], '')
if redis.call('del', KEYS[1]) == 0 then
  return 0
end
redis.call('publish', ARGV[1], '0')
return 1
