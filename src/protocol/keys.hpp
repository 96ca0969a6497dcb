// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>

namespace holdfast::detail {

struct kind;

/// The text of a key or a channel, in parts.
using key_parts = std::array<std::string_view, 4>;

/// What is beside the key of a lock. Kinds of one layout use the same key: their holds exclude each other, and their
/// callers wait in one line.
struct key_layout {
  std::string_view channel;  // of the channel where a release is published
  std::string_view token;    // of the key of the newest fencing token; empty: there is none
};

/// How a release is published. What a waiter has subscribed to hears it: SUBSCRIBE hears publish, SSUBSCRIBE spublish.
enum class publish_word : std::uint8_t {
  publish,
  spublish,
  automatic,  // spublish where the server has it: Redis 7
  both,       // publish, and spublish where the server has it
};
/// As the scripts know it.
std::string_view text_of(publish_word word) noexcept;

/// The key of a primary's vote, one of several.
inline constexpr std::string_view vote_marker = "holdfast:redlock";

/// Where a lock lives. Made once for a mutex and shared by all that works on it: as small as can be, because there may
/// be a million.
struct HOLDFAST_EXPORT lock_keys {
  lock_keys(const kind& of, std::string_view name, std::string_view prefix = {},
            publish_word word = publish_word::publish);
  lock_keys(const lock_keys&) = delete;
  lock_keys& operator=(const lock_keys&) = delete;
  ~lock_keys() {
    if (&lock != &name) delete &lock;
  }

  const kind& of;
  const std::string name;    // the user's, without prefix
  const std::string& lock;   // N: the key itself; where there is no prefix, the name
  const std::uint32_t hash;  // hash_of(name)
  const publish_word word;
};
/// By which names are told apart quickly.
std::uint32_t hash_of(std::string_view name) noexcept;
using shared_keys = std::shared_ptr<const lock_keys>;

/// Whether all that is derived from a lock's key is in the key's slot of a cluster: it has no brace at all, or its
/// first '{' is followed by at least one byte and a '}'.
bool fits_a_cluster(std::string_view lock) noexcept;

}  // namespace holdfast::detail
