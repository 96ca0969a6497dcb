// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>

#include "sync/claim/terms.hpp"

namespace holdfast::detail {

/// The number of confirmations that pushed changes of held keys may cause: of one claim one in 10 ms, of a client 1000
/// at once and then 1000 a second. None is lost, each is only sent later.
///
/// Decision: anybody who may write a key can change it as fast as he likes, and a server with a full tracking table
/// pushes keys that nobody has changed.
class push_budget {
 public:
  static constexpr nanoseconds least_pause = milliseconds(10);  // between two confirmations of one claim
  static constexpr int at_once = 1000;
  static constexpr nanoseconds interval = milliseconds(1);  // one confirmation of the client comes back in it

  /// The earliest time of a confirmation, of a claim that was confirmed last by a command sent at `confirmed`.
  time_point next(time_point confirmed, time_point now) const noexcept {
    return std::max({now, confirmed + least_pause, spent_until_ - (at_once - 1) * interval});
  }
  /// A change causes a confirmation.
  void spend(time_point now) noexcept { spent_until_ = std::max(spent_until_, now) + interval; }

 private:
  time_point spent_until_{};  // the whole budget has come back then
};

}  // namespace holdfast::detail
