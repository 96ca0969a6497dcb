-- SPDX-License-Identifier: BSL-1.0
-- fenced_task(fence, key...; token, n, word..., n, word..., ...)
--   -> {1, reply...}: all was done | {0, newest}: refused, nothing was done
--
-- Runs a task of one or more commands, each given as the number of its words and the words, as one step: unless a
-- larger token was seen under `fence`, a key of your own for the resource. KEYS also names the keys that the commands
-- touch.
-- Redis does not undo: a command that fails (WRONGTYPE, say) ends the task where it is. Put first what may fail.
local token = tonumber(ARGV[1])
if not token or token < 1 or token > 9007199254740991 or token ~= math.floor(token) then
  return redis.error_reply('FENCE the token is no whole number from 1 to 2^53-1')
end
local task, at = {}, 2
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  if not words or words < 1 or words ~= math.floor(words) or at + words > #ARGV then
    return redis.error_reply('FENCE argument ' .. at .. ' does not count the words of a command')
  end
  task[#task + 1] = {unpack(ARGV, at + 1, at + words)}
  at = at + words + 1
end
local newest = tonumber(redis.call('get', KEYS[1]) or '0')
if token < newest then
  return {0, newest}
end
redis.call('set', KEYS[1], string.format('%.0f', token))
local replies = {1}
for i, command in ipairs(task) do
  replies[i + 1] = redis.call(unpack(command))
end
return replies
