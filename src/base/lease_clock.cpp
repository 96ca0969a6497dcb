// SPDX-License-Identifier: BSL-1.0
#include "base/lease_clock.hpp"

#include <time.h>

namespace holdfast::detail {

lease_clock::time_point lease_clock::now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return time_point{std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec}};
}

const clock& system_clock() noexcept {
  struct boottime_clock final : clock {
    time_point now() const noexcept override { return lease_clock::now(); }
  };
  static const boottime_clock instance;
  return instance;
}

}  // namespace holdfast::detail
