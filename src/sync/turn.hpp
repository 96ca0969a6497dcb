// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/lease_clock.hpp"

namespace holdfast::detail {

/// Whose turn it is with one name, as far as one client can know: for how long this client may pass the lock from one
/// of its own waiters to the next, and how long it then leaves the lock to others. Pure.
///
/// A turn begins when Redis grants the lock. It ends at an unlock: when all have had it that waited here as the turn
/// began, but not before `least`; and in any case after `longest`. Afterwards this client rests until each of the
/// others that have heard of the release may have had a turn of its own: until each has released, or so long after the
/// last release as those that have not would need, at the pace of the last two.
class turn {
 public:
  using duration = lease_clock::duration;
  static constexpr duration least = std::chrono::milliseconds(2), longest = std::chrono::milliseconds(20);
  static constexpr duration first_rest = std::chrono::milliseconds(2);
  static constexpr duration quickest = std::chrono::microseconds(300), slowest = std::chrono::milliseconds(5);

  /// Redis has granted the lock, and so many wait for it here.
  void begin(time_point now, std::size_t waiting) noexcept;
  bool may_pass(time_point now) const noexcept;
  void passed() noexcept { ++passed_; }
  /// The release is on its way.
  void release_begins() noexcept;
  /// Redis has confirmed the release and told so many of it; `listening`: this client was one of them.
  void release_ends(time_point now, std::uint64_t told, bool listening) noexcept;
  /// A release was told. True: by this client itself, so that it is no news.
  bool hear(time_point now) noexcept;

  /// This client asks for the lock no earlier.
  time_point rests_until() const noexcept { return rests_until_; }

 private:
  time_point began_{}, rests_until_{}, echo_until_{};
  time_point last_release_{};            // ours, or told
  duration pace_ = quickest;             // between two of them
  std::size_t waited_ = 0, passed_ = 0;  // of this turn: who waited as it began, and passes since
  std::uint64_t others_ = 0;             // who have heard of our last release, and may not have had their turn yet
  bool releasing_ = false, heard_early_ = false;
};

}  // namespace holdfast::detail
