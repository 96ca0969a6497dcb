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
///
/// Clients of Redisson, and ours without turns, do not rest: after each release whoever of them is first has the lock.
/// They are found out by leaving it to them for a moment longer than their turn: if somebody has it then, such rivals
/// are about, and for a while each of the others is left as much time as the own turn has taken.
class handoff_window {
 public:
  using duration = lease_clock::duration;
  static constexpr duration least = std::chrono::milliseconds(2), longest = std::chrono::milliseconds(20);
  static constexpr duration first_cool_down = std::chrono::milliseconds(2);
  static constexpr duration quickest = std::chrono::microseconds(300), slowest = std::chrono::milliseconds(5);
  static constexpr duration longest_probe = std::chrono::milliseconds(1);  // half of the pace, if that is less
  static constexpr duration probe_pause = std::chrono::microseconds(300);
  static constexpr unsigned most_probes_beside_barging = 200;
  static constexpr duration longest_cool_down_beside_barging = std::chrono::milliseconds(200);
  static constexpr duration barging_assumed_for = std::chrono::seconds(1),
                            probe_interval = std::chrono::milliseconds(250);

  /// `between_looks`: how long those wait who look and do not listen; zero: there are none.
  handoff_window(time_point now, duration between_looks) noexcept
      : between_looks_(between_looks), next_probe_(first_probe(now, between_looks)) {}

  /// Redis has granted the lock, and so many wait for it here.
  void begin(time_point now, std::size_t waiting) noexcept;
  bool may_pass(time_point now) const noexcept;
  void passed() noexcept { ++passed_; }
  /// The release is on its way; its answer says how many others there are.
  void release_begins(time_point now) noexcept;
  /// What this client does with the message of its own release: it was told, and hears it; it was told, and hears it
  /// if it rests, because it listens no longer than that; or it was not told.
  enum class own_notification { heard, fades, none };
  /// Redis has confirmed the release and told so many of it.
  void release_ends(time_point now, std::uint64_t subscribers, own_notification own) noexcept;
  /// A release was told. True: by this client itself, so that it is no news.
  bool hear(time_point now) noexcept;
  /// This client has asked for the lock, and somebody else has it. For how long it waits at most, though no message
  /// comes: beside rivals it asks again and again, so that it is not always later than they.
  duration found_busy(time_point now) noexcept;

  /// This client asks for the lock no earlier.
  time_point cool_down_until() const noexcept { return cool_down_until_; }

 private:
  bool beside_barging_clients(time_point now) const noexcept { return now < barging_until_; }
  static time_point first_probe(time_point now, duration between_looks) noexcept;
  duration left_to_those_who_look(time_point now) noexcept;

  const duration between_looks_;
  time_point began_{}, cool_down_until_{}, own_notification_until_{};
  time_point barging_until_{}, next_probe_{};
  time_point last_release_{};            // ours, or told
  duration pace_ = quickest;             // between two of them
  std::size_t waited_ = 0, passed_ = 0;  // of this turn: who waited as it began, and passes since
  std::uint64_t others_ = 0;             // who have heard of our last release, and may not have had their turn yet
  unsigned asked_in_vain_ = 0;           // since it rested by time
  bool releasing_ = false, heard_early_ = false;
  bool cools_down_by_time_ = false;  // however many it hears
  bool probing_ = false;             // the others have had their turn; who has the lock now is a rival
};

}  // namespace holdfast::detail
