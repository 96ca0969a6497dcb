// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ratio>

#include "base/random.hpp"

namespace holdfast::detail {

/// Decorrelated jitter: each delay is drawn from [base, 3 x the last one], capped.
class retry_backoff {
 public:
  using duration = lease_clock::duration;
  using limit = std::chrono::duration<std::int32_t, std::milli>;  // small: each waiter has two
  retry_backoff(limit base, limit cap) noexcept : base_(base), cap_(std::max(base, cap)) {}

  duration next(random_source& random) {
    last_ = last_ == duration{} ? base_ : std::min<duration>(cap_, base_ + random.up_to(3 * last_ - base_));
    return last_;
  }
  void reset() noexcept { last_ = {}; }

 private:
  limit base_, cap_;
  duration last_{};
};

/// Full jitter: each delay is drawn from [floor, min(cap, base x 2^n)]. The first attempt after a healthy stretch is
/// immediate.
class reconnect_backoff {
 public:
  using duration = lease_clock::duration;
  reconnect_backoff(duration base, duration cap) noexcept : base_(base), cap_(std::max(base, cap)) {}

  duration next(random_source& random) {
    if (attempts_++ == 0) return {};
    const auto ceiling = std::min<duration>(cap_, base_ * (1LL << std::min(attempts_ - 2, 20)));
    return std::max(base_ / 2, random.up_to(ceiling));
  }
  void reset() noexcept { attempts_ = 0; }

 private:
  duration base_, cap_;
  int attempts_ = 0;
};

}  // namespace holdfast::detail
