// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <chrono>

namespace holdfast::cli {

/// Pure: how long a server is waited for.
///
/// Decision: a wait that ends far too late is not counted. This process stood still, or its whole machine did: it was
/// paused, or got no processor. That says nothing of the server, and its answer may be on the way. The caller waits
/// too, so a few standstills are forgiven, not each.
class patience {
 public:
  using duration = std::chrono::steady_clock::duration;

  explicit patience(duration limit) noexcept
      : left_(limit), step_(std::max<duration>(limit / steps, std::chrono::milliseconds(100))) {}

  /// The next wait: a part of the limit, so that a standstill is told from silence.
  duration next() const noexcept { return std::min(left_, step_); }
  /// A wait for `planned` took that long.
  void waited(duration planned, duration took) noexcept {
    if (took >= 2 * planned && forgiven_ < most_forgiven)
      ++forgiven_;
    else
      left_ -= std::min(took, left_);
  }
  bool is_over() const noexcept { return left_ <= duration::zero(); }

 private:
  static constexpr int steps = 10, most_forgiven = 3;

  duration left_;
  const duration step_;
  int forgiven_ = 0;
};

}  // namespace holdfast::cli
