// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast::chaos {

enum class campaign {
  within,    ///< faults that a lock of one server survives
  beside,    ///< the same, beside processes that write Redisson's locks and never rest
  outside,   ///< also faults that it does not
  red,       ///< locks of five servers, and servers that forget
  sentinel,  ///< a primary with replicas that take its place
  cluster,   ///< the same three times, and slots that move
};

constexpr std::string_view to_string(campaign c) noexcept {
  switch (c) {
    case campaign::within: return "within";
    case campaign::beside: return "beside";
    case campaign::outside: return "outside";
    case campaign::red: return "red";
    case campaign::sentinel: return "sentinel";
    case campaign::cluster: break;
  }
  return "cluster";
}

/// Throws on another name.
inline campaign campaign_of(std::string_view name) {
  for (const auto c :
       {campaign::within, campaign::beside, campaign::outside, campaign::red, campaign::sentinel, campaign::cluster})
    if (name == to_string(c)) return c;
  throw std::runtime_error("no such campaign: " + std::string(name));
}

/// That grant a lock, together.
constexpr std::size_t lock_servers(campaign c) noexcept { return c == campaign::red ? 5 : 1; }

/// A red_lock has one holder.
constexpr bool has_permits(campaign c) noexcept { return c != campaign::red; }

/// A red_lock has no readers.
constexpr bool has_sides(campaign c) noexcept { return c != campaign::red; }

/// A red_lock has no queue.
constexpr bool has_fair_locks(campaign c) noexcept { return c != campaign::red; }

/// The server that grants is never replaced, so it pushes each change of a lock that is held for long.
constexpr bool has_kept_locks(campaign c) noexcept {
  return c == campaign::within || c == campaign::beside || c == campaign::outside;
}

/// The count of a latch is lost with the data of its server.
constexpr bool has_latches(campaign c) noexcept { return c == campaign::within || c == campaign::beside; }

/// Terms go on rising after a server has forgotten its data: they are no less than the time of its clock.
constexpr bool has_elections(campaign c) noexcept { return c == campaign::within || c == campaign::outside; }

inline constexpr std::size_t workers = 4;

/// Processes of another library.
constexpr std::size_t peers(campaign c) noexcept { return c == campaign::beside ? 2 : 0; }

/// Whether another server may take the place of the one that grants.
constexpr bool fails_over(campaign c) noexcept { return c == campaign::sentinel || c == campaign::cluster; }

/// All replicas that can be elected.
constexpr unsigned replicas_of(campaign c) noexcept {
  return c == campaign::sentinel ? 2 : c == campaign::cluster ? 1 : 0;
}

/// The TTL of leases without one of their own: short, so that the faults beat it. Where there are failovers, most beat
/// some of it.
constexpr std::chrono::milliseconds client_ttl(campaign c) noexcept {
  return std::chrono::milliseconds(fails_over(c) ? 2000 : 400);
}
/// Nothing lives longer in Redis without renewal.
constexpr std::chrono::milliseconds longest_ttl(campaign c) noexcept {
  return std::chrono::milliseconds(fails_over(c) ? 3000 : 600);
}

}  // namespace holdfast::chaos
