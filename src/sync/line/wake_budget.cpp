// SPDX-License-Identifier: BSL-1.0
#include "sync/line/wake_budget.hpp"

namespace holdfast::detail {
namespace {

constexpr nanoseconds rounding = milliseconds(1);  // of a TTL that Redis tells
constexpr nanoseconds less_than_renewal = shortest_renewed_ttl / 4;

}  // namespace

// Of one hold the end is seen where it is, or a command's way too early. So an end that moves is another's grant that
// came between two tries, or a renewal, which moves it by a third of the TTL and gives nothing back. Nor need the grant
// of a lock that changes hands as slowly: meanwhile the budget has come back by itself.
void wake_budget::found_busy(time_point asked, time_point now, milliseconds holder_ttl) noexcept {
  const auto ends = asked + holder_ttl;
  const bool earlier = held_until_ && now + holder_ttl + rounding < *held_until_;
  const bool later = held_until_ && ends > *held_until_ + rounding;
  if (earlier || (later && ends < *held_until_ + less_than_renewal)) spent_until_ = {};
  if (!held_until_ || earlier || later) held_until_ = ends;
}

}  // namespace holdfast::detail
