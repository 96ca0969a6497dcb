-- SPDX-License-Identifier: BSL-1.0
-- write_note(note; ttl, text) -> 1
-- The text is `<age> <field> <words>`. The age is how long the owner field has had the lock, in milliseconds. The key
-- gets the time of the grant by the server's clock in place of the age. So the clocks of clients do not matter.
-- If SET is refused, the older note goes as well: it may have the same field, and would describe another hold.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local age, rest = string.match(ARGV[2], '^(%d+)( .*)$')
if not age then
  return redis.error_reply('HOLDFAST invalid note')
end
local time = redis.call('time')
local since = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) - age)
local set = redis.pcall('set', KEYS[1], since .. rest, 'px', ARGV[1])
if set.err then
  redis.pcall('del', KEYS[1])
  return set
end
return 1
