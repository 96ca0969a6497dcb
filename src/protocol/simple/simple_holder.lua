-- SPDX-License-Identifier: BSL-1.0
-- simple_holder(lock) -> {owner, 1, pttl}: who holds it | nil: free
-- It only reads, so a replica may answer. The string is cut: whoever may write the key could make it as long as they
-- like.
local held = redis.call('getrange', KEYS[1], '0', '255')
local left = redis.call('pttl', KEYS[1])
if left == -2 then
  return nil
end
return {held, '1', left}
