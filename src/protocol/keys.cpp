// SPDX-License-Identifier: BSL-1.0
#include "protocol/keys.hpp"

#include <functional>

#include "protocol/kind.hpp"

namespace holdfast::detail {
namespace {

// Redisson asks only whether the name has an opening brace anywhere, not whether it makes a hash tag.
key_parts beside(std::string_view what, std::string_view lock) {
  const bool tagged = lock.find('{') != std::string_view::npos;
  return {what, tagged ? ":" : ":{", lock, tagged ? "" : "}"};
}

std::string joined(const key_parts& all) {
  std::string out;
  for (const auto part : all) out += part;
  return out;
}

}  // namespace

std::string_view text_of(publish_word word) noexcept {
  switch (word) {
    case publish_word::publish: break;
    case publish_word::spublish: return "spublish";
    case publish_word::automatic: return "auto";
    case publish_word::both: return "both";
  }
  return "publish";
}

std::uint32_t hash_of(std::string_view name) noexcept {
  return static_cast<std::uint32_t>(std::hash<std::string_view>()(name));
}

lock_keys::lock_keys(const kind& k, std::string_view n, std::string_view prefix, publish_word w)
    : of(k), name(n), lock(prefix.empty() ? name : *new std::string(std::string(prefix).append(n))), hash(hash_of(n)),
      word(w) {}

key_parts channel_parts(const lock_keys& k) { return beside(k.of.layout.channel, k.lock); }
key_parts token_parts(const lock_keys& k) { return beside(k.of.layout.token, k.lock); }

std::string channel_of(const lock_keys& k) { return joined(channel_parts(k)); }
std::string token_key(const lock_keys& k) { return joined(token_parts(k)); }

// The braces that beside() adds must enclose what is hashed of the key itself: a '}' in it would close them early.
bool fits_a_cluster(std::string_view lock) noexcept {
  const auto open = lock.find('{');
  if (open == lock.npos) return lock.find('}') == lock.npos;
  const auto close = lock.find('}', open + 1);
  return close != lock.npos && close > open + 1;
}

}  // namespace holdfast::detail
