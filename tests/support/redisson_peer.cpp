// SPDX-License-Identifier: BSL-1.0
#include "support/redisson_peer.hpp"

#include <algorithm>
#include <cstdint>
#include <random>

#include "support/redisson_scripts.hpp"

namespace holdfast::test {
namespace {

using std::chrono::steady_clock;

// KEYS: lock, channel.
constexpr auto force_unlock_script = R"(
local removed = redis.call('del', KEYS[1])
if removed == 1 then redis.call('publish', KEYS[2], '0') end
return removed)";

// KEYS: locks. ARGV: ttl, one owner for each lock.
constexpr auto renew_script = R"(
local renewed = {}
for i, key in ipairs(KEYS) do
  renewed[i] = redis.call('hexists', key, ARGV[i + 1])
  if renewed[i] == 1 then redis.call('pexpire', key, ARGV[1]) end
end
return renewed)";

std::string derived(std::string_view prefix, std::string_view name) {
  const bool has_brace = name.find('{') != name.npos;
  return std::string(prefix) + (has_brace ? ":" : ":{") + std::string(name) + (has_brace ? "" : "}");
}

std::string random_hex(std::size_t digits) {
  static thread_local std::random_device random;
  std::string text;
  while (text.size() < digits) text += "0123456789abcdef"[random() % 16];
  return text;
}

}  // namespace

redisson_peer::redisson_peer(const real_redis& server) : commands_(server), messages_(server), uuid_(new_uuid()) {}
redisson_peer::redisson_peer(const std::string& unix_path)
    : commands_(unix_path), messages_(unix_path), uuid_(new_uuid()) {}

std::string redisson_peer::channel(std::string_view name, side of) {
  return derived(of == side::none ? "redisson_lock__channel" : "redisson_rwlock", name);
}

std::string redisson_peer::latch_key(std::string_view name, std::string_view request) {
  return derived("redisson_unlock_latch", name) + ":" + std::string(request);
}

std::string redisson_peer::new_request() { return random_hex(32); }

std::string redisson_peer::new_uuid() {
  auto digits = random_hex(32);
  digits[12] = '4';
  digits[16] = "89ab"[digits[16] % 4];
  for (const std::size_t at : {20, 16, 12, 8}) digits.insert(at, 1, '-');
  return digits;
}

std::optional<long long> redisson_peer::acquire(std::string_view name, milliseconds ttl, long long thread, side of) {
  asked_at_ = steady_clock::now();
  const auto reply = of == side::read ? call_side(redisson::read_write::read_lock, name, ttl, thread, of)
                     : of == side::write
                         ? call_side(redisson::read_write::write_lock, name, ttl, thread, of)
                         : commands_("EVAL", redisson::acquire_script, 1, name, ttl.count(), owner(thread));
  if (reply.is_nil()) return std::nullopt;
  return reply.integer();
}

bool redisson_peer::lock(std::string_view name, milliseconds ttl, milliseconds wait, long long thread, side of) {
  const auto deadline = steady_clock::now() + wait;
  if (!acquire(name, ttl, thread, of)) return true;
  messages_.subscribe(channel(name, of));
  bool acquired = false;
  for (;;) {
    const auto busy_for = acquire(name, ttl, thread, of);
    acquired = !busy_for;
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (acquired || left <= milliseconds{0}) break;
    messages_.next_message(*busy_for >= 0 ? std::min(left, milliseconds(*busy_for)) : left);
  }
  messages_.unsubscribe(channel(name, of));
  while (messages_.next_message(milliseconds{0})) {
  }
  return acquired;
}

std::optional<bool> redisson_peer::unlock(std::string_view name, long long thread) {
  const auto request = new_request();
  const auto released = send_unlock(name, request, thread);
  commands_("DEL", latch_key(name, request));
  return released;
}

std::optional<bool> redisson_peer::send_unlock(std::string_view name, std::string_view request, long long thread) {
  const auto reply = commands_("EVAL", redisson::unlock_script, 3, name, channel(name), latch_key(name, request), "0",
                               watchdog_timeout.count(), owner(thread), "publish", redisson::latch_ttl);
  if (reply.is_nil()) return std::nullopt;
  return reply.integer() == 1;
}

bool redisson_peer::unlock_side(std::string_view name, milliseconds ttl, long long thread, side of) {
  const auto script = of == side::read ? redisson::read_write::read_unlock : redisson::read_write::write_unlock;
  return !call_side(script, name, ttl, thread, of).is_nil();
}

value redisson_peer::call_side(std::string_view script, std::string_view name, milliseconds ttl, long long thread,
                               side of) {
  const auto deadlines = derived({}, name).substr(1) + ':';
  return commands_("EVAL", script, 2, name, channel(name, of), owner(thread), ttl.count(), "publish", deadlines);
}

bool redisson_peer::force_unlock(std::string_view name) {
  return commands_("EVAL", force_unlock_script, 2, name, channel(name)).integer() == 1;
}

std::vector<bool> redisson_peer::renew(const std::vector<std::pair<std::string, long long>>& names_and_threads,
                                       milliseconds ttl) {
  std::vector<std::string> argv{"EVAL", renew_script, std::to_string(names_and_threads.size())};
  for (const auto& [name, thread] : names_and_threads) argv.push_back(name);
  argv.push_back(std::to_string(ttl.count()));
  for (const auto& [name, thread] : names_and_threads) argv.push_back(owner(thread));
  const auto reply = commands_.call(argv);
  if (reply.is_error()) throw server_error(reply.text);
  std::vector<bool> renewed;
  for (const auto& flag : reply.array()) renewed.push_back(flag.integer() == 1);
  return renewed;
}

bool redisson_peer::is_locked(std::string_view name) { return commands_("EXISTS", name).integer() == 1; }

long long redisson_peer::hold_count(std::string_view name, long long thread) {
  const auto count = commands_("HGET", name, owner(thread));
  return count.is_nil() ? 0 : count.integer();
}

}  // namespace holdfast::test
