-- SPDX-License-Identifier: BSL-1.0
-- holder(lock)
--   -> {owner, count, pttl}: who holds it | n > 1: the fields of a hash that is no lock of one owner | nil: free
-- It only reads, so a replica may answer. The strings are cut: whoever may write the key could make them as long as
-- they like.
local fields = redis.call('hlen', KEYS[1])
if fields == 0 then
  return nil
end
if fields > 1 then
  return fields
end
local held = redis.call('hgetall', KEYS[1])
return {string.sub(held[1], 1, 256), string.sub(held[2], 1, 32), redis.call('pttl', KEYS[1])}
