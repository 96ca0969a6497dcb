-- simple_holder(lock) -> {owner, 1, pttl}: who holds it | nil: free
-- It only reads, so a replica may answer. The string is cut: whoever may write the key could make it as long as they
-- like.
local held = redis.call('get', KEYS[1])
if not held then
  return nil
end
return {string.sub(held, 1, 256), '1', redis.call('pttl', KEYS[1])}
