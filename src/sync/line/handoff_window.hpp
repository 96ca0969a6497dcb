// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/lease_clock.hpp"

namespace holdfast::detail {

/// The turns of one name, as far as one client can know them. Pure. It bounds the time during which this client passes
/// the lock between its own waiters. It also decides how long the client then leaves the lock to other clients.
///
/// A turn begins when Redis grants the lock. It ends at an unlock, when all waiters of its beginning have had the lock.
/// It does not end before `least`, and always ends after `longest`. Afterwards the client cools down, until each other
/// client that was notified may have had a turn of its own.
///
/// Decision: the cool-down is computed from notifications, without a key in Redis. The answer of a release counts the
/// notified clients, and each of them publishes its own release. A client that stays silent is given twice the time
/// that the others needed, by the pace of the last two releases. With a single time two of three attempts found the
/// lock busy. Eight processes of two tasks sent 1.02 commands for each acquisition, in place of 10.7. No process had
/// two turns between two of another.
///
/// Decision: barging clients are found by a probe. Clients of Redisson, and clients without turns, do not cool down:
/// after each release the fastest of them gets the lock. No answer tells them apart from other clients. So this client
/// sometimes leaves a free lock alone a little longer. A client that takes it then is a barging client.
///
/// Decision: beside barging clients the cool-down is a time: for each other client, as long as the own turn took. Their
/// messages say nothing about turns. Afterwards the client asks every 300 us, 200 times at most, because a message
/// comes too late against a thread in the holder's process. Beside one process of Redisson the shares were 0.98 and
/// 1.02, and without turns 1.99 and 0.01.
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

  /// `between_looks`: the pause of clients that poll and do not subscribe. Zero: this kind has none.
  handoff_window(time_point now, duration between_looks) noexcept
      : between_looks_(between_looks), next_probe_(first_probe(now, between_looks)) {}

  /// Redis has granted the lock. `waiting`: the waiters of this client.
  void begin(time_point now, std::size_t waiting) noexcept;
  bool may_pass(time_point now) const noexcept;
  void passed() noexcept { ++passed_; }
  /// The release is under way. Its answer will count the other clients.
  void release_begins(time_point now) noexcept;
  /// The own notification of a release. `heard`: this client subscribes and receives it. `fades`: the client subscribes
  /// only until the cool-down ends. `none`: the client does not subscribe.
  enum class own_notification { heard, fades, none };
  /// Redis has confirmed the release and notified this number of subscribers.
  void release_ends(time_point now, std::uint64_t subscribers, own_notification own) noexcept;
  /// A message reports a release. True: it is the own notification, which is no news.
  bool hear(time_point now) noexcept;
  /// Redis says busy. Returns the longest time to wait without a message. Beside barging clients it is short, or they
  /// would always be faster.
  duration found_busy(time_point now) noexcept;

  /// This client asks for the lock no earlier.
  time_point cool_down_until() const noexcept { return cool_down_until_; }

 private:
  bool beside_barging_clients(time_point now) const noexcept { return now < barging_until_; }
  static time_point first_probe(time_point now, duration between_looks) noexcept;
  duration cool_down_of_probe(time_point now) noexcept;

  const duration between_looks_;
  time_point began_{}, cool_down_until_{}, own_notification_until_{};
  time_point barging_until_{}, next_probe_{};
  time_point last_release_{};            // of this client, or by a message
  duration pace_ = quickest;             // the time between the last two releases
  std::size_t waited_ = 0, passed_ = 0;  // of this turn: the waiters at its beginning, and the hand-overs since
  std::uint64_t others_ = 0;             // notified clients that may not have had their turns yet
  unsigned found_busy_times_ = 0;        // busy answers since a cool-down by time
  bool releasing_ = false, heard_early_ = false;
  bool cools_down_by_time_ = false;  // beside barging clients: messages do not prolong it
  bool probing_ = false;             // all others have had their turns; a holder now is a barging client
};

}  // namespace holdfast::detail
