// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <optional>

#include "sync/claim/terms.hpp"

namespace holdfast::detail {

/// The number of unsuccessful tries that wake-ups may cause: 20 at once, then 100 a second.
///
/// Decision: unsuccessful wake-ups have a budget. A client that may publish on a lock's channel could make every
/// waiting client ask Redis as fast as it answers. A wake-up without budget is delayed by at most 10 ms, and none is
/// lost. A grant gives the whole budget back, also a grant to another client. In a fair race of many processes most
/// wake-ups find that another one was faster.
class wake_budget {
 public:
  static constexpr int at_once = 20;
  static constexpr nanoseconds interval = milliseconds(10);  // one wake-up comes back in it

  /// The earliest time of the next try that a wake-up causes.
  time_point next() const noexcept { return spent_until_ - (at_once - 1) * interval; }
  /// A wake-up causes a try.
  void spend(time_point now) noexcept { spent_until_ = std::max(spent_until_, now) + interval; }
  /// Redis has granted the lock to this client.
  void granted() noexcept {
    spent_until_ = {};
    held_until_.reset();
  }
  /// A try that was sent at `asked` found the lock busy, and learned its holder's TTL by `now`.
  void found_busy(time_point asked, time_point now, milliseconds holder_ttl) noexcept;

 private:
  time_point spent_until_{};              // the whole budget has come back then
  std::optional<time_point> held_until_;  // the holder's end, or a little before
};

}  // namespace holdfast::detail
