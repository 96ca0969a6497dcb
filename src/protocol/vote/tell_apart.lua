-- SPDX-License-Identifier: BSL-1.0
-- tell_apart(key; number, ttl) -> the number that the server was given first
-- For servers that do not say which run of which they are: one that has two numbers is there twice.
local first = redis.call('get', KEYS[1])
if not first then
  redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
  return ARGV[1]
end
return string.sub(first, 1, 16)
