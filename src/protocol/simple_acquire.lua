-- simple_acquire(lock; ttl, owner) -> nil: acquired | n >= 0: busy, the holder's TTL | -1: busy, and the holder has no TTL
-- Free: the key is the owner's, with a TTL. Mine already (this command was sent twice): as acquired. A stranger's:
-- nothing changes.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl ~= math.floor(ttl) then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local set = redis.pcall('set', KEYS[1], ARGV[2], 'nx', 'px', string.format('%.0f', ttl))
if set and set.ok then
  return nil
end
local held = redis.call('get', KEYS[1])
if not held then
  return set
end
local left = redis.call('pttl', KEYS[1])
if held ~= ARGV[2] then
  return left
end
-- Always written: only a primary may say whose a lock is, and a replica refuses it.
redis.call('pexpire', KEYS[1], string.format('%.0f', math.max(left, ttl)))
return nil
