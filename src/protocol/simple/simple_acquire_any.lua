-- SPDX-License-Identifier: BSL-1.0
-- simple_acquire_any(lock...; ttl, owner) -> n > 0: acquired the n-th | 0: all are busy
-- The first that is free is the owner's, with a TTL; nothing else changes. An owner is sent once: it is not looked for.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
for i = 1, #KEYS do
  if redis.call('set', KEYS[i], ARGV[2], 'nx', 'px', string.format('%.0f', ttl)) then
    return i
  end
end
return 0
