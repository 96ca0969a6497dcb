// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <optional>

#include "sync/claim/terms.hpp"

namespace holdfast::detail {

/// How many tries wake-ups may cause in vain. A message costs nothing to send, and every client with a waiter asks
/// Redis at each: twenty times at once, then a hundred times a second. A lock that changes hands, here or elsewhere,
/// gives the whole budget back.
class wake_budget {
 public:
  static constexpr int at_once = 20;
  static constexpr nanoseconds interval = milliseconds(10);  // in which one comes back

  /// From when on the next wake-up may be followed by a try.
  time_point next() const noexcept { return spent_until_ - (at_once - 1) * interval; }
  /// One is followed.
  void spend(time_point now) noexcept { spent_until_ = std::max(spent_until_, now) + interval; }
  /// The lock was granted here.
  void granted() noexcept {
    spent_until_ = {};
    held_until_.reset();
  }
  /// A try that was sent at `asked` found the lock busy, and learned its holder's TTL by `now`.
  void found_busy(time_point asked, time_point now, milliseconds holder_ttl) noexcept;

 private:
  time_point spent_until_{};              // all has come back then
  std::optional<time_point> held_until_;  // the holder's end, or a little before
};

}  // namespace holdfast::detail
