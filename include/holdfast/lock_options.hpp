// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <optional>

namespace holdfast {
using std::chrono::milliseconds;

/// Terms of one lease. Trivially destructible and without views: safe to brace inside co_await on g++ 12, safe to start
/// later.
struct lock_options {
  std::optional<milliseconds> ttl{};  ///< default: config::ttl. 10 ms to 24 h; 100 ms at least when renewed
  std::optional<bool> renew{};        ///< default: renewed unless a ttl is given (Redisson's rule)
  /// Renewal stops this long after the grant or the last lease::feed(); default: never.
  std::optional<milliseconds> max_hold{};
  /// So many replicas must have the grant before it counts, and each renewal before it extends the lease; default:
  /// config::min_replicas. 0 to 15.
  std::optional<unsigned> min_replicas{};
};

}  // namespace holdfast
