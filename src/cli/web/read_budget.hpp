// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>

namespace holdfast::cli {

/// Pure: the pauses between reads, so that the page costs Redis at most a hundredth of a core.
///
/// Decision: the cost is the time of the answers beyond a round trip. That is more than the work of Redis: no model of
/// its commands is needed, and a slow server is read less. A poll of 1,000 locks takes a few milliseconds, so it
/// comes every second or two.
class read_budget {
 public:
  using clock = std::chrono::steady_clock;

  /// Redis has worked for this long.
  void spend(std::chrono::microseconds work, clock::time_point now);
  /// Time until the next poll: 1 s to 60 s.
  std::chrono::milliseconds pause(clock::time_point now) const;
  /// One lock may be read before the next poll.
  bool may_read(clock::time_point now) const;

 private:
  std::chrono::microseconds debt(clock::time_point now) const;

  std::chrono::microseconds debt_{};  // at `at_`
  clock::time_point at_{};
};

}  // namespace holdfast::cli
