// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>

#include <holdfast/config.hpp>

#include "base/lease_clock.hpp"

/// The arithmetic of leases: pure functions of durations and instants.
namespace holdfast::detail {

using std::chrono::milliseconds;
using nanoseconds = lease_clock::duration;

inline constexpr milliseconds shortest_ttl{10}, shortest_renewed_ttl{100}, longest_ttl = std::chrono::hours(24);
/// The TTL that confirms a claim without prolonging it: share::ttl_to_send() replaces it by the rest of the validity.
inline constexpr milliseconds ttl_that_never_raises{1};
inline constexpr unsigned most_reentries = 2'147'483'647;

/// The checked wishes of one lease. Each held lock and each waiter has them, so they are as small as possible.
struct terms {
  using duration = std::chrono::duration<std::uint32_t, std::milli>;
  static_assert(longest_ttl <= duration::max());

  duration ttl;
  bool renew;
  std::uint8_t min_replicas = 0;
  duration max_hold{};  // zero: none

  bool limited() const noexcept { return max_hold != duration::zero(); }
};

/// The time by which we end a lease before the server does: ⌈ttl·ρ⌉ + 2 ms.
constexpr nanoseconds drift_of(milliseconds ttl, double rho) {
  return nanoseconds(static_cast<nanoseconds::rep>(static_cast<double>(nanoseconds(ttl).count()) * rho)) +
         milliseconds(2);
}

/// The end of a grant or renewal that was sent at `sent`, by our clock.
constexpr time_point valid_until(time_point sent, milliseconds ttl, double rho) {
  return sent + ttl - drift_of(ttl, rho);
}

/// The least validity of a grant. With less the holder could do nothing, so the grant is given back.
constexpr nanoseconds min_validity(milliseconds ttl) {
  return std::max<nanoseconds>(milliseconds(2), nanoseconds(ttl) / 20);
}

/// The timeout of a command about a lease of this TTL.
constexpr nanoseconds command_budget(const config& config, milliseconds ttl) {
  return std::min<nanoseconds>(config.command_timeout, nanoseconds(ttl) / 5);
}

/// The timeout for the vote of one primary. It is short, because the other primaries have granted meanwhile.
constexpr nanoseconds vote_budget(const config& config, milliseconds ttl) {
  return std::max<nanoseconds>(std::min<nanoseconds>(config.command_timeout, nanoseconds(ttl) / 50), milliseconds(10));
}

/// The timeout of the replicas for a claim that is valid until then. It leaves most of the validity to the holder.
constexpr nanoseconds replication_budget(const config& config, time_point valid, time_point now) {
  return std::max<nanoseconds>(std::min<nanoseconds>(config.command_timeout, (valid - now) / 4), milliseconds(1));
}

/// The pause after a renewal that failed.
constexpr nanoseconds renewal_retry_pause(milliseconds ttl) {
  return std::clamp<nanoseconds>(nanoseconds(ttl) / 60, milliseconds(20), std::chrono::seconds(1));
}

}  // namespace holdfast::detail
