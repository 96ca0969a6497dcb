// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "support/seeded_random.hpp"

namespace holdfast::chaos {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// The TTL of leases without one of their own: short, so that the faults beat it.
inline constexpr milliseconds client_ttl{400};
/// A waiter that hears no message looks as often: several times in such a lease.
inline constexpr milliseconds poll_cap{133};
/// Nothing lives longer in Redis without renewal.
inline constexpr milliseconds longest_ttl{600};

/// Draws what happens with the probability that it is asked for. The same draws for the same seed.
class dice {
 public:
  explicit dice(std::uint64_t seed) noexcept : numbers_(seed) {}

  bool per_mille(unsigned chances) { return below(1000) < chances; }
  /// Uniform in [0, n).
  std::uint64_t below(std::uint64_t n) { return numbers_.next() % n; }
  /// Uniform in [least, most].
  milliseconds between(milliseconds least, milliseconds most) {
    return least + milliseconds(below(static_cast<std::uint64_t>((most - least).count()) + 1));
  }
  /// Exponential.
  microseconds around(microseconds mean);

 private:
  test::seeded_random numbers_;
};

/// What one task does next, with one lock.
struct section {
  enum class patience { once, bounded, forever };
  /// By its name: a fenced_mutex, a mutex (no tokens), a simple_mutex (nor re-entries).
  enum class kind { fenced, plain, simple };
  enum class ending {
    unlock,
    unlock_twice,
    drop,     ///< the lease's destructor releases it
    abandon,  ///< nobody releases it: it ends with its TTL
  };

  microseconds think{};  ///< before it
  std::string lock;
  bool own = false;  ///< nobody else ever asks for it
  kind by = kind::fenced;
  bool force_unlock = false;  ///< breaks the lock instead of taking it; nothing below counts then
  patience how = patience::forever;
  milliseconds wait{};                   ///< bounded
  std::optional<milliseconds> cancel{};  ///< cancelled so long after the call
  milliseconds ttl = client_ttl;
  bool renewed = true;
  std::optional<milliseconds> max_hold{};
  milliseconds fed_for{};  ///< how long it says that it makes progress, where there is a max_hold
  bool as_body = false;    ///< the work is the body of with_lock(); of the rest below, hold and counts are its
  unsigned reentries = 0;
  microseconds hold{};
  bool renew_by_hand = false;
  bool counts = true;  ///< writes to the counter that believes everybody
  ending end = ending::unlock;
};

/// One of many short ones, with locks that many want.
section draw_section(dice&);
/// One for as long as its renewal carries it, most often with a lock of one's own.
section draw_long_section(dice&, const std::string& own_lock);

}  // namespace holdfast::chaos
