// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <memory>

#include "base/birthplace.hpp"
#include "base/lease_clock.hpp"

namespace holdfast::detail {

/// Until when something in Redis is ours alone: one instant, which the client's strand moves and any thread may read.
/// Loss is sticky: once anybody has seen it over, nothing extends it.
class validity {
 public:
  validity(const clock& time, std::shared_ptr<const std::atomic<bool>> client_closed);

  // Any thread.
  /// 0 once it is over; also when the client was closed, and in a child process, whose copy holds nothing.
  lease_clock::duration left() const noexcept;
  time_point until() const noexcept;
  const clock& time() const noexcept { return time_; }

  // The client's strand.
  /// Never shortens. False: somebody has seen it over, and over it is.
  bool extend(time_point until) noexcept;

 private:
  const clock& time_;
  const std::shared_ptr<const std::atomic<bool>> client_closed_;
  const birthplace here_;
  mutable std::atomic<time_point::rep> until_{0};  // negative once somebody has seen it over
};

}  // namespace holdfast::detail
