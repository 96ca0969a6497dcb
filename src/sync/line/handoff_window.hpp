// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/lease_clock.hpp"

namespace holdfast::detail {

/// The turn that one claim serves: from its grant, through the hand-overs, to its release. handoff_window decides by it
/// whether the claim may be passed once more. A client may have several claims of one name, each with a turn of its
/// own.
struct stint {
  time_point began{};         // the grant
  std::uint32_t waiting = 0;  // the waiters of this client at that time
  std::uint32_t passed = 0;   // hand-overs since
};

/// The turns of one name, as far as one client can know them. Pure. It bounds the time during which this client passes
/// the lock between its own waiters. It also decides how long the client then leaves the lock to other clients.
///
/// A turn begins when Redis grants the lock. It ends at an unlock, when all waiters of its beginning have had the lock.
/// It does not end before `least`, and always ends after `longest`. Afterwards the client cools down, until each other
/// client that was notified may have had a turn of its own. Each claim has a turn of its own, its stint.
///
/// Decision: the cool-down is computed from notifications, without a key in Redis. The answer of a release counts the
/// notified clients, and each of them publishes its own release. A client that stays silent is given twice the time
/// that the others needed, by the pace of the last two releases. With a single time two of three attempts found the
/// lock busy. Eight processes of two tasks sent 1.02 commands for each acquisition, in place of 10.7. No process had
/// two turns between two of another.
///
/// Decision: the busy answer tells of barging clients. Clients of Redisson do not cool down: after each release the
/// fastest of them gets the lock. Their owner fields differ from ours, and the script says so. So two holdfast clients
/// never take each other for one. Each own turn and each holder that takes turns makes such clients less likely: after
/// `turns_beside_barging` of them a client assumes none.
///
/// Decision: beside barging clients the others are owed time: each as much as the own turn took. Each release pays for
/// one hold of the own length. A longer interval is a long hold, or a turn with hand-overs, and pays for its time. A
/// silence of twice the usual interval, at most `longest`, ends the cool-down with a question: the lock may be free. If
/// it is held, the cool-down goes on.
///
/// Decision: afterwards the client asks at each release, and when the present hold may end. The lock may stay free at a
/// release. But a message comes too late if a waiter in the holder's process, or with a leaner client, is faster. So
/// the client also asks from 500 us before the usual end on, again 100 us after each answer, twelve times for each
/// release. Holds of uneven length cannot be foreseen: beside a rival that always wants the lock they bring less than a
/// fair share.
///
/// Decision: not every release is won that way. The time from the first unsuccessful question to the grant is taken off
/// the next cool-down. A turn has at least three holds while somebody waits. Long holds too come in turns of up to
/// eight. With fewer holds in a turn the waits for the grant would exceed the cool-down.
class handoff_window {
 public:
  using duration = lease_clock::duration;
  static constexpr duration least = std::chrono::milliseconds(2), longest = std::chrono::milliseconds(20);
  static constexpr duration first_cool_down = std::chrono::milliseconds(2);
  static constexpr duration quickest = std::chrono::microseconds(300), slowest = std::chrono::milliseconds(5);
  static constexpr duration probe_pause = std::chrono::microseconds(100), probe_ahead = std::chrono::microseconds(500);
  static constexpr unsigned most_probes = 12;  // for each release
  static constexpr duration longest_while_held = std::chrono::seconds(1), longest_owed = std::chrono::minutes(1);
  static constexpr unsigned turns_beside_barging = 16;  // without an answer that shows a barging holder
  static constexpr std::size_t least_holds_beside_barging = 3, most_holds_beside_barging = 8;
  static constexpr duration poller_assumed_for = std::chrono::seconds(1),
                            opening_interval = std::chrono::milliseconds(250);

  /// `between_looks`: the pause of clients that poll and do not subscribe. Zero: this kind has none. `several`: this
  /// client may have several claims of the name at once.
  handoff_window(time_point now, duration between_looks, bool several = false) noexcept
      : between_looks_(between_looks), several_(several), ended_{now},
        next_opening_(first_opening(now, between_looks)) {}

  /// Redis has granted the lock.
  void begin(time_point now) noexcept;
  /// The claim of this turn may be passed on.
  bool may_pass(const stint& turn, time_point now) const noexcept;
  /// The release of this turn's claim is under way. Its answer will count the other clients.
  void release_begins(time_point now, const stint& turn) noexcept;
  /// The own notification of a release. `heard`: this client subscribes and receives it. `fades`: the client subscribes
  /// only until the cool-down ends. `none`: the client does not subscribe.
  enum class own_notification { heard, fades, none };
  /// Redis has confirmed the release and notified this number of subscribers.
  void release_ends(time_point now, std::uint64_t subscribers, own_notification own) noexcept;
  /// No release is under way any more, also if one found no memory.
  void all_released() noexcept { releasing_ = heard_early_ = 0; }
  /// A message reports a release. True: it is the own notification, which is no news.
  bool hear(time_point now) noexcept;
  /// Redis says busy. `barging`: the holder's client takes no turns. `may_last`: what is left of the holder's TTL.
  /// Returns the longest time to wait for a message.
  duration found_busy(time_point now, bool barging, duration may_last = duration::max()) noexcept;

  /// This client asks for the lock no earlier.
  time_point cool_down_until() const noexcept { return cool_down_until_; }

 private:
  bool beside_barging() const noexcept { return turns_beside_ > 0; }
  static time_point first_opening(time_point now, duration between_looks) noexcept;
  duration cool_down_of_opening(time_point now) noexcept;
  void cool_down(time_point now, duration pause) noexcept;
  duration longest_silence() const noexcept;
  time_point nearly_over() const noexcept;  // the hold since the last release
  time_point paid_at() const noexcept { return last_release_ + owed_; }

  const duration between_looks_;
  const bool several_;
  stint ended_;  // the turn whose release began last
  time_point cool_down_until_{}, own_notification_until_{};
  time_point last_release_{};                                  // of this client, or by a message
  duration interval_ = quickest, interval_before_ = quickest;  // between the last three releases
  std::uint64_t others_ = 0;                                   // notified clients that may not have had their turns yet
  // Releases under way, own notifications that came before their answers, and those that are still to come.
  std::uint32_t releasing_ = 0, heard_early_ = 0, own_notifications_ = 0;
  // Beside clients that poll.
  time_point pollers_until_{}, next_opening_{};
  bool open_ = false;  // the lock is left alone for them
  // Beside barging clients.
  duration own_hold_{};            // of the last turn, on average
  duration owed_{};                // from the last release on: the cool-down of the others' turns
  time_point late_since_{};        // the first unsuccessful question after it
  duration credit_{};              // taken off the next one
  unsigned probes_ = most_probes;  // since the last release
  unsigned turns_beside_ = 0;      // to come in which they are assumed
};

}  // namespace holdfast::detail
