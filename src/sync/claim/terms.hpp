// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include <holdfast/config.hpp>

#include "base/lease_clock.hpp"

/// The arithmetic of leases: pure functions of durations and instants.
namespace holdfast::detail {

using std::chrono::milliseconds;
using nanoseconds = lease_clock::duration;

inline constexpr milliseconds shortest_ttl{10}, shortest_renewed_ttl{100}, longest_ttl = std::chrono::hours(24);
/// The TTL that confirms a lease which nobody renews. The validity that is left is sent in its place: the key has that.
inline constexpr milliseconds ttl_that_never_raises{1};
inline constexpr unsigned most_reentries = 2'147'483'647;

/// What one lease asks for, checked. As small as can be: there is one for each held lock.
struct terms {
  using duration = std::chrono::duration<std::uint32_t, std::milli>;
  static_assert(longest_ttl <= duration::max());

  duration ttl;
  bool renew;
  std::uint8_t min_replicas = 0;
  std::optional<duration> max_hold;
};

/// How much earlier than the server we end a lease: ⌈ttl·ρ⌉ + 2 ms.
constexpr nanoseconds drift_of(milliseconds ttl, double rho) {
  return nanoseconds(static_cast<nanoseconds::rep>(static_cast<double>(nanoseconds(ttl).count()) * rho)) +
         milliseconds(2);
}

/// Until when a grant or renewal that was sent at `sent` holds, by our clock.
constexpr time_point valid_until(time_point sent, milliseconds ttl, double rho) {
  return sent + ttl - drift_of(ttl, rho);
}

/// A grant with less left is given back: its holder could do nothing with it.
constexpr nanoseconds min_validity(milliseconds ttl) {
  return std::max<nanoseconds>(milliseconds(2), nanoseconds(ttl) / 20);
}

/// How long a command about a lease of this TTL may take.
constexpr nanoseconds command_budget(const config& config, milliseconds ttl) {
  return std::min<nanoseconds>(config.command_timeout, nanoseconds(ttl) / 5);
}

/// How long one of several primaries is waited for that is asked for a lock: little, because the others have answered.
constexpr nanoseconds vote_budget(const config& config, milliseconds ttl) {
  return std::max<nanoseconds>(std::min<nanoseconds>(config.command_timeout, nanoseconds(ttl) / 50), milliseconds(10));
}

/// How long replicas may take for what is valid until then: so little that most of it is left for its holder.
constexpr nanoseconds replication_budget(const config& config, time_point valid, time_point now) {
  return std::max<nanoseconds>(std::min<nanoseconds>(config.command_timeout, (valid - now) / 4), milliseconds(1));
}

/// The pause after a renewal that failed.
constexpr nanoseconds renewal_retry_pause(milliseconds ttl) {
  return std::clamp<nanoseconds>(nanoseconds(ttl) / 60, milliseconds(20), std::chrono::seconds(1));
}

}  // namespace holdfast::detail
