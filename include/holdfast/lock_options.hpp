// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <optional>
#include <string_view>

namespace holdfast {
using std::chrono::milliseconds;

/// Terms of one lease. Trivially destructible: you can brace it inside co_await on g++ 12. Each call copies it, so you
/// can start the awaitable later.
struct lock_options {
  std::optional<milliseconds> ttl{};  ///< default: config::ttl. 10 ms to 24 h; when renewed at least 100 ms
  std::optional<bool> renew{};        ///< default: renewed unless a ttl is given (Redisson's rule)
  /// Renewal stops this long after the grant or the last lease::feed(). Default: never.
  std::optional<milliseconds> max_hold{};
  /// Number of replicas that must have the grant before it counts, and each renewal before it extends the lease. 0 to
  /// 15; default: config::min_replicas.
  std::optional<unsigned> min_replicas{};
  /// The purpose of the lock, for a person to read: "order 42, request 7f3a". At most 200 bytes (invalid_name). Ignored
  /// without config::notes, by an expirable_semaphore, and by a reader of a shared_mutex. Every user who may read the
  /// server's keys can see it. The call copies the text before it returns its awaitable. A re-entry keeps the note of
  /// its hold.
  std::string_view note{};
};

}  // namespace holdfast
