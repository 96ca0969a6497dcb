-- SPDX-License-Identifier: BSL-1.0
-- observe(lock, token)
--   -> {pttl, term, owner, value}: a candidate leads | {pttl, term, owner}: another lock's holder, which has no value
--   | nil: nobody leads
-- The term of another lock's holder is the newest fencing token, 0 if there is none. The strings but the value are
-- cut: whoever may write the key could make them as long as they like. It only reads.
local fields = redis.call('hlen', KEYS[1])
if fields == 0 then
  return nil
end
local owner, value, term
if fields == 1 or fields == 3 then
  local all = redis.call('hgetall', KEYS[1])
  for i = 1, #all, 2 do
    if all[i] == 'leader' then
      value = all[i + 1]
    elseif all[i] == 'term' then
      term = all[i + 1]
    else
      owner = all[i]
    end
  end
end
if not owner or not string.find(owner, ':') or fields == 3 and not (value and term) then
  return redis.error_reply('HOLDFAST no lock: a hash of other fields')
end
local left = redis.call('pttl', KEYS[1])
owner = string.sub(owner, 1, 256)
if fields == 1 then
  return {left, string.sub(redis.call('get', KEYS[2]) or '0', 1, 32), owner}
end
return {left, string.sub(term, 1, 32), owner, value}
