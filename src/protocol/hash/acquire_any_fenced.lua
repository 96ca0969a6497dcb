-- SPDX-License-Identifier: BSL-1.0
-- acquire_any_fenced(lock..., token...; ttl, owner[, token_ttl]) -> {n, token}: acquired the n-th | 0: all are busy
-- As acquire_any; the new hold gets a fencing token as acquire_fenced gives it. One whose counter is no number counts
-- as busy: acquire_fenced says what is wrong with it.
local ttl = tonumber(ARGV[1])
if not ttl or ttl < 1 or ttl > 86400000 or ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid ttl')
end
local token_ttl = tonumber(ARGV[3] or '0')
if not token_ttl or token_ttl < 0 or token_ttl > 315360000000 or token_ttl % 1 ~= 0 then
  return redis.error_reply('HOLDFAST invalid token_ttl')
end
local locks = #KEYS / 2
for i = 1, locks do
  if redis.call('exists', KEYS[i]) == 0 then
    local counter = KEYS[locks + i]
    local last = redis.pcall('get', counter)
    local token = type(last) ~= 'table' and tonumber(last or '0')
    if token and token >= 0 and token <= 9007199254740990 and token % 1 == 0 then
      local time = redis.call('time')
      token = math.max(token + 1, time[1] * 1000000 + time[2])
      local text = string.format('%.0f', token)
      if token_ttl > 0 then
        redis.call('set', counter, text, 'px', string.format('%.0f', token_ttl))
      else
        redis.call('set', counter, text, 'keepttl')
      end
      redis.call('hset', KEYS[i], ARGV[2], '1')
      local set = redis.pcall('pexpire', KEYS[i], string.format('%.0f', ttl))
      if type(set) == 'table' then
        redis.call('hdel', KEYS[i], ARGV[2])
        return set
      end
      return {i, token}
    end
  end
end
return 0
