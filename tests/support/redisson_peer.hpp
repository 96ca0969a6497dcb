// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/raw_client.hpp"

namespace holdfast::test {

/// Behaves on the wire as a Redisson RLock of one JVM does: same keys, fields, TTLs, messages. The scripts are our own.
/// Blocking; one thread at a time. A `thread` is a Java thread of that JVM.
class redisson_peer {
 public:
  using milliseconds = std::chrono::milliseconds;

  explicit redisson_peer(const real_redis& server);
  explicit redisson_peer(const std::string& unix_path);

  /// The lock of a name: an RLock, or a side of an RReadWriteLock.
  enum class side { none, read, write };

  /// <uuid of version 4>:<thread>
  std::string owner(long long thread = 1) const { return uuid_ + ":" + std::to_string(thread); }
  static std::string channel(std::string_view name, side of = side::none);
  static std::string latch_key(std::string_view name, std::string_view request);
  static std::string new_uuid();

  /// One attempt. Nothing: acquired or re-entered (the TTL is set, perhaps shortened). Else the holder's TTL in ms, -1
  /// without one.
  std::optional<long long> acquire(std::string_view name, milliseconds ttl, long long thread = 1, side of = side::none);
  bool try_lock(std::string_view name, milliseconds ttl = watchdog_timeout, long long thread = 1) {
    return !acquire(name, ttl, thread);
  }
  /// Tries, subscribes, tries again, waits for a message or the holder's TTL; false after `wait`.
  bool lock(std::string_view name, milliseconds ttl, milliseconds wait, long long thread = 1, side of = side::none);
  /// When the last attempt was sent.
  std::chrono::steady_clock::time_point asked_at() const noexcept { return asked_at_; }

  /// 32 hex digits: one unlock, sent once or more.
  static std::string new_request();
  /// true: released; false: still held; nothing: not the owner. The latch is deleted afterwards, as Redisson does.
  std::optional<bool> unlock(std::string_view name, long long thread = 1);
  /// Only the script, so that the same request can be sent twice; the latch stays.
  std::optional<bool> send_unlock(std::string_view name, std::string_view request, long long thread = 1);
  /// Of a side. False: not its holder.
  bool unlock_side(std::string_view name, milliseconds ttl, long long thread, side of);
  bool force_unlock(std::string_view name);

  /// One run of the watchdog: for each name whether it was ours.
  std::vector<bool> renew(const std::vector<std::pair<std::string, long long>>& names_and_threads,
                          milliseconds ttl = watchdog_timeout);
  bool renew(std::string_view name, long long thread = 1) { return renew({{std::string(name), thread}}).at(0); }

  bool is_locked(std::string_view name);
  long long hold_count(std::string_view name, long long thread = 1);

  static constexpr milliseconds watchdog_timeout{30'000};

 private:
  value call_side(std::string_view script, std::string_view name, milliseconds ttl, long long thread, side of);

  raw_client commands_, messages_;
  std::string uuid_;
  std::chrono::steady_clock::time_point asked_at_{};
};

}  // namespace holdfast::test
