// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>

namespace holdfast::detail {

/// CLOCK_BOOTTIME: monotonic, and it runs through suspend, unlike std::chrono::steady_clock on Linux.
/// A lease that ended while the machine slept is over when it wakes up.
struct lease_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<lease_clock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

using time_point = lease_clock::time_point;

/// The clock that is passed in. Callable from any thread; must outlive every lease.
class clock {
 public:
  virtual time_point now() const noexcept = 0;

 protected:
  ~clock() = default;
};

/// lease_clock behind the interface; never destroyed.
const clock& system_clock() noexcept;

/// `from + by`, held at time_point::max() instead of overflowing.
template <class Rep, class Period>
constexpr time_point saturating_add(time_point from, std::chrono::duration<Rep, Period> by) noexcept {
  const auto room = std::chrono::duration_cast<std::chrono::duration<Rep, Period>>(time_point::max() - from);
  return by >= room ? time_point::max() : from + by;
}

}  // namespace holdfast::detail
