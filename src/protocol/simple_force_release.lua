-- simple_force_release(lock; channel) -> 1: somebody's hold was broken | 0: there was none
-- A lock is a short string, whoever wrote it. A long one may be somebody's data, and is left alone.
if #redis.call('getrange', KEYS[1], '0', '256') > 256 then
  return redis.error_reply('HOLDFAST no lock: a long string')
end
if redis.call('del', KEYS[1]) == 0 then
  return 0
end
redis.call('publish', ARGV[1], '0')
return 1
