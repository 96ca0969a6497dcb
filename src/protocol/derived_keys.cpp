// SPDX-License-Identifier: BSL-1.0
#include "protocol/derived_keys.hpp"

#include "protocol/kind.hpp"

namespace holdfast::detail {
namespace {

// Byte for byte as Redisson: it looks only for an opening brace, and does not check for a complete hash tag.
bool is_tagged(std::string_view lock) { return lock.find('{') != std::string_view::npos; }

}  // namespace

std::string joined(const key_parts& all) {
  std::string text;
  for (const auto part : all) text += part;
  return text;
}

key_parts beside(std::string_view stem, std::string_view lock) {
  const bool tagged = is_tagged(lock);
  return {stem, tagged ? ":" : ":{", lock, tagged ? "" : "}"};
}

key_parts below(std::string_view lock, std::string_view suffix) {
  const bool tagged = is_tagged(lock);
  return {tagged ? "" : "{", lock, tagged ? ":" : "}:", suffix};
}

key_parts channel_parts(const lock_keys& keys) {
  const auto& layout = keys.of.layout;
  return layout.always_in_braces ? key_parts{layout.channel, "{", keys.lock, "}"} : beside(layout.channel, keys.lock);
}
key_parts token_parts(const lock_keys& keys) { return beside(keys.of.layout.token, keys.lock); }
key_parts note_parts(const lock_keys& keys) { return beside(note_stem, keys.lock); }

std::string channel_of(const lock_keys& keys) { return joined(channel_parts(keys)); }
std::string token_key(const lock_keys& keys) { return joined(token_parts(keys)); }
std::string note_key(const lock_keys& keys) { return joined(note_parts(keys)); }

}  // namespace holdfast::detail
