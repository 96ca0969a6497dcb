-- SPDX-License-Identifier: BSL-1.0
-- shared_holder(lock)
--   -> {mode, owner, count, pttl, readers}: how it is held | n: a hash of n fields that is no such lock | nil: free
-- `owner` is the writer, without :write, or one of up to 64 readers. `count` is how often it holds the lock.
-- It only reads, so a replica may answer. The strings are cut: a user who may write the key could make them very long.
local mode, size = redis.call('hget', KEYS[1], 'mode'), redis.call('hlen', KEYS[1])
if size == 0 then
  return nil
elseif mode ~= 'read' and (mode ~= 'write' or size > 65) then
  return size
end
local owner, count, readers = '', '0', size - 1
local fields = size <= 65 and redis.call('hgetall', KEYS[1]) or {}
for i = 1, #fields, 2 do
  if mode == 'write' and string.sub(fields[i], -6) == ':write' then
    owner, count, readers = string.sub(fields[i], 1, -7), fields[i + 1], readers - 1
  elseif mode == 'read' and fields[i] ~= 'mode' then
    owner, count = fields[i], fields[i + 1]
  end
end
return {mode, string.sub(owner, 1, 256), string.sub(count, 1, 32), redis.call('pttl', KEYS[1]), readers}
