// SPDX-License-Identifier: BSL-1.0
#include "chaos/guarded_resource.hpp"

namespace holdfast::chaos {
namespace {

constexpr const char* writes_key = "writes";

// write(register, writes; token) -> {number of this write, 1: accepted | 0: a higher token was here}
// Tokens are below 2^53, so Lua's doubles compare them exactly.
constexpr const char* write_if_not_stale = R"lua(
local number = redis.call('incr', KEYS[2])
if tonumber(ARGV[1]) < tonumber(redis.call('get', KEYS[1]) or '0') then
  return {number, 0}
end
redis.call('set', KEYS[1], ARGV[1])
return {number, 1}
)lua";

}  // namespace

long long guarded_resource::read_counter(const std::string& lock) {
  const auto value = server_("GET", "counter:" + lock);
  return value.is_nil() ? 0 : value.integer();
}

void guarded_resource::write_counter(const std::string& lock, long long value) {
  server_("SET", "counter:" + lock, value);
}

guarded_resource::verdict guarded_resource::write_register(const std::string& lock, std::uint64_t token) {
  const auto said = server_("EVAL", write_if_not_stale, 2, "register:" + lock, writes_key, token).array();
  return {said.at(0).integer(), said.at(1) == 1};
}

long long guarded_resource::writes() {
  const auto value = server_("GET", writes_key);
  return value.is_nil() ? 0 : value.integer();
}

}  // namespace holdfast::chaos
