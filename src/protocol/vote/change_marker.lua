-- SPDX-License-Identifier: BSL-1.0
-- change_marker(marker; was, becomes) -> 1: the marker was `was`, and is `becomes` | 0: it is something else
-- `was` is empty where there was none. So a wait that has been written down ends only if nobody has touched it.
if (redis.call('get', KEYS[1]) or '') ~= ARGV[1] then
  return 0
end
redis.call('set', KEYS[1], ARGV[2])
return 1
