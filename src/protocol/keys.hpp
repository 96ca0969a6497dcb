// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>

namespace holdfast::detail {

struct kind;

/// The text of a key or a channel, in parts.
using key_parts = std::array<std::string_view, 4>;

/// The stems of the names beside the key of a lock. Kinds of one layout use the same key: their holds exclude each
/// other, and their callers wait in one line.
struct key_layout {
  std::string_view channel;  // of the channel for releases
  std::string_view token;    // of the key with the newest fencing token; empty: no tokens
  /// The channel is stem{N}, also if N has a brace.
  bool always_in_braces = false;
};

/// The command that publishes a release. PUBLISH reaches SUBSCRIBE, and SPUBLISH reaches SSUBSCRIBE.
///
/// Decision: the choice is Redisson's: sharded if the server can. Otherwise Java waiters would sleep out a TTL. The
/// script decides, by whether its Lua has `redis.REDIS_VERSION_NUM`. A client that decided would have to ask each node
/// for its version first.
///
/// Decision: a release that is published by both commands says `00` on the sharded channel. Redisson reads either text
/// as the number 0, and our clients ignore the copy. Timing alone cannot tell such a copy from a release by Redisson,
/// and ignoring that one would lose a wake-up.
enum class publish_word : std::uint8_t {
  publish,
  spublish,
  automatic,  // spublish if the server has it: Redis 7
  both,       // publish, and spublish if the server has it
};
/// The word that the scripts expect.
std::string_view text_of(publish_word word) noexcept;

/// The stem of the key with the note of a lock (protocol/note/note.hpp). All kinds have it.
inline constexpr std::string_view note_stem = "holdfast_note";
/// The key of the vote of one of several primaries.
inline constexpr std::string_view vote_marker = "holdfast:redlock";

/// The part of a client in the names of its locks.
struct naming {
  std::string prefix;
  publish_word word = publish_word::publish;
  bool in_slots = false;  // all keys of a lock must be in one slot
  bool bare = false;      // in slots a name may have no brace
};

/// The reason why a client refuses each call about a name.
enum class name_fault : std::uint8_t {
  none,
  empty,
  too_long,      // more than longest_name
  splits_slots,  // see fits_a_cluster()
  has_a_brace,   // see naming::bare
};
inline constexpr std::size_t longest_name = 64 * 1024;

/// The names of a lock. Made once for a mutex and shared by everything that works on it. It is small, because there may
/// be a million.
struct HOLDFAST_EXPORT lock_keys {
  lock_keys(const kind& of, std::string_view name, const naming& by = {});
  lock_keys(const lock_keys&) = delete;
  lock_keys& operator=(const lock_keys&) = delete;
  ~lock_keys() {
    if (&lock != &name) delete &lock;
  }

  const kind& of;
  const std::string name;    // the user's, without prefix
  const std::string& lock;   // N, the key itself: without a prefix it is `name`
  const std::uint32_t hash;  // hash_of(name)
  const publish_word word;
  const name_fault fault;
};
/// The names of a semaphore. Their number of permits rides in each acquire, so it counts where Redis has none.
struct permit_keys : lock_keys {
  permit_keys(const kind& of, std::string_view name, const naming& by, std::uint32_t permits)
      : lock_keys(of, name, by), total(permits) {}

  const std::uint32_t total;
};
/// Tells names apart quickly.
std::uint32_t hash_of(std::string_view name) noexcept;
using shared_keys = std::shared_ptr<const lock_keys>;

/// True: the key and everything derived from it are in one slot of a cluster. The key has no brace at all, or its first
/// '{' is followed by at least one byte and a '}'.
///
/// Decision: another name is refused and not repaired. A repair would be a second wire format, which Redisson does not
/// know. A test tries the rule on 200,000 random names. It admits no name that splits, and nearly every name that it
/// refuses would split.
bool fits_a_cluster(std::string_view lock) noexcept;

}  // namespace holdfast::detail
