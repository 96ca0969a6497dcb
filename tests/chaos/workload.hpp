// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chaos/campaign.hpp"
#include "support/seeded_random.hpp"

namespace holdfast::chaos {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A waiter that hears no message looks as often: several times in a lease.
inline constexpr milliseconds poll_cap{133};

/// So often a holder looks at its lease.
inline constexpr milliseconds look_every{20};
/// Of a thousand grants, and of as many looks, so many keys are looked at.
inline constexpr unsigned witnessed = 40;

/// The expirable_semaphore: so many at once, and so many of one hold at most.
inline constexpr std::string_view semaphore_name = "permits-8";
inline constexpr unsigned permits_in_all = 3, most_permits_of_one = 3;

/// The shared_mutex.
inline constexpr std::string_view shared_name = "shared-9";

/// Names of each fair_mutex begin with this.
inline constexpr std::string_view fair_names = "fair-";

/// The locks that one task each holds for as long as it can, begin with this.
inline constexpr std::string_view kept_names = "kept-";

/// The election of all workers.
inline constexpr std::string_view election_name = "election-1";

/// Names of latches begin with this.
inline constexpr std::string_view latch_names = "latch-";

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

/// A lock of the workload, and by what it is locked.
struct lock_name {
  /// A fenced_mutex, a mutex (no tokens), a simple_mutex (nor re-entries); a red_lock as mutex, or as simple_mutex; an
  /// expirable_semaphore; a side of a shared_mutex; a fair_mutex.
  enum class kind { fenced, plain, simple, red, red_simple, permits, reader, writer, fair };

  std::string text;
  kind by = kind::fenced;

  /// Whether one key of its name lives as long as each of its holds.
  bool has_key() const noexcept { return by != kind::permits; }
  bool reentrant() const noexcept { return has_key() && by != kind::simple && by != kind::red_simple; }
  /// Whether Redis counts its re-entries.
  bool counted() const noexcept { return has_key() && by != kind::reader; }
};
std::string_view to_string(lock_name::kind) noexcept;

/// What one task does next, with one lock or several.
struct section {
  enum class choice {
    one,
    any,  ///< any_of the locks
    all,  ///< a multi_lock of them
  };
  enum class wait_mode { once, bounded, forever };
  enum class ending {
    unlock,
    unlock_twice,
    drop,     ///< the lease's destructor releases it
    abandon,  ///< nobody releases it: it ends with its TTL
  };

  microseconds think{};  ///< before it
  std::vector<lock_name> locks;
  choice of = choice::one;
  unsigned permits = 1;       ///< of a semaphore
  bool own = false;           ///< nobody else ever asks for them
  bool force_unlock = false;  ///< breaks the lock instead of taking it; nothing below counts then
  wait_mode how = wait_mode::forever;
  milliseconds wait{};                   ///< bounded
  std::optional<milliseconds> cancel{};  ///< cancelled so long after the call
  milliseconds ttl{};
  bool renewed = true;
  unsigned replicas = 0;  ///< so many must have the grant
  std::optional<milliseconds> max_hold{};
  milliseconds fed_for{};  ///< how long it says that it makes progress, where there is a max_hold
  bool as_body = false;    ///< the work is the body of with_lock(); of the rest below, hold and counts are its
  unsigned reentries = 0;
  std::vector<section> nested{};  ///< within it; what would be one more hold of its own lock is none
  microseconds hold{};
  bool renew_by_hand = false;
  bool counts = true;  ///< writes to the counter that believes everybody
  ending end = ending::unlock;
};

/// Draws the sections of one kind of campaign.
class workload {
 public:
  explicit workload(campaign);

  /// One of many short ones, with locks that many want.
  section draw_section(dice&) const;
  /// One for as long as its renewal carries it, most often with a lock of one's own, or several.
  section draw_long_section(dice&, const std::string& own_lock) const;

 private:
  section drawn_for(microseconds think) const;
  void draw_terms(dice&, section&) const;
  void draw_ttl(dice&, section&) const;
  void draw_replicas(dice&, section&) const;
  void draw_several(dice&, section&) const;
  section draw_permits(dice&) const;
  section draw_side(dice&) const;
  section draw_fair(dice&) const;
  void add_others(dice&, section&, bool of_one_kind) const;

  const campaign campaign_;
  const bool red_;                    // where there are no locks of several
  std::vector<lock_name> contended_;  // those that are wanted most come first
  lock_name breakable_;               // force_unlock() stays with it: nothing excuses an overlap of the others
  lock_name of_all_;                  // of long sections
  lock_name semaphore_{std::string(semaphore_name), lock_name::kind::permits};
  lock_name fair_{std::string(fair_names) + "10", lock_name::kind::fair};
  lock_name breakable_fair_{std::string(fair_names) + "breakable-11", lock_name::kind::fair};
  lock_name::kind own_, own_simple_;  // of long sections, too: by what its own locks are locked
};

}  // namespace holdfast::chaos
