// SPDX-License-Identifier: BSL-1.0
#include "sync/line/wake_budget.hpp"

namespace holdfast::detail {
namespace {

constexpr nanoseconds rounding = milliseconds(1);  // Redis rounds a TTL to milliseconds
constexpr nanoseconds less_than_renewal = shortest_renewed_ttl / 4;

}  // namespace

// An answer shows the end of a hold exactly, or too early by the command's way. An end that moves is therefore a grant
// to another client or a renewal. A renewal moves it by a third of the TTL, and gives nothing back. A grant that moves
// it as far gives nothing back either: such a lock changes hands so slowly that the budget has returned by itself.
void wake_budget::found_busy(time_point asked, time_point now, milliseconds holder_ttl) noexcept {
  const auto ends = asked + holder_ttl;
  const bool earlier = held_until_ && now + holder_ttl + rounding < *held_until_;
  const bool later = held_until_ && ends > *held_until_ + rounding;
  if (earlier || (later && ends < *held_until_ + less_than_renewal)) spent_until_ = {};
  if (!held_until_ || earlier || later) held_until_ = ends;
}

}  // namespace holdfast::detail
