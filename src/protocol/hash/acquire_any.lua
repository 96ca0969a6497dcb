-- SPDX-License-Identifier: BSL-1.0
-- acquire_any(lock...; ttl, owner) -> n > 0: acquired the n-th | 0: all are busy
-- The owner holds the first that is free once, with a TTL; nothing else changes. An owner field is sent once: it is not
-- looked for. Scripts do not roll back: the write that may be refused after the first one, to a user without PEXPIRE,
-- takes the first one back.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
for i = 1, #KEYS do
  if redis.call('exists', KEYS[i]) == 0 then
    redis.call('hset', KEYS[i], ARGV[2], '1')
    local set = redis.pcall('pexpire', KEYS[i], ARGV[1])
    if type(set) == 'table' then
      redis.call('hdel', KEYS[i], ARGV[2])
      return set
    end
    return i
  end
end
return 0
