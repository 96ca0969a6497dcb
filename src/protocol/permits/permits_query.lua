-- SPDX-License-Identifier: BSL-1.0
-- permits_query(counter, permits; total, id) -> {left, out, ms, first, held}
-- left: free permits; ms: until the next permit ends (-1: none is out); first: its id; held: 1 if `id` is out.
-- A permit that has ended counts as free, even before it is taken back. A missing counter counts as total - out.
-- The script only reads, so a replica may answer.
local total = tonumber(ARGV[1])
if not total or total < 1 or total > 2147483647 or total % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid count')
end
local counter = redis.call('get', KEYS[1])
if counter and (not tonumber(counter) or string.format('%.0f', tonumber(counter)) ~= counter) then
  return redis.error_reply('HOLDFAST no lock: a string that is no counter')
end
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local later = string.format('(%.0f', now)
local out = redis.call('zcount', KEYS[2], later, '+inf')
local left = counter and counter + redis.call('zcard', KEYS[2]) - out or total - out
local first = redis.call('zrangebyscore', KEYS[2], later, '+inf', 'withscores', 'limit', 0, 1)
local score = redis.call('zscore', KEYS[2], ARGV[2])
return {left, out, first[2] and math.min(first[2] - now, 2^53) or -1, string.sub(first[1] or '', 1, 256),
  score and tonumber(score) > now and 1 or 0}
