// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/timers.hpp"
#include "sync/hold/hold.hpp"
#include "sync/line/handoff_window.hpp"
#include "sync/line/waiting_line.hpp"

namespace holdfast::detail {

/// A claim that may be passed on.
struct claim_left {
  time_point valid_until;
  milliseconds may_live;  // for so long its key may be there
  unsigned replicas;      // that have it
};
/// Pure: it gives a waiter all that it asks for, except the token of a fenced kind.
bool may_take_over(const terms& asked, const claim_left& left, time_point now, double drift) noexcept;

/// Hands the lock of one name from a hold to the next waiter of this client, and then leaves it to other clients.
///
/// Decision: a hand-over passes a claim from one hold to the next, and sends nothing. No hand-over is therefore late,
/// lost or repeated. The successor is the first waiter of the line, if the claim gives it all that it asks for. A
/// hand-over prolongs nothing: the claim needs two thirds of the TTL, as each renewed claim has while Redis answers.
/// The TTL may not be longer than a grant would give either, because others wait that long for a killed process.
///
/// A client that hands over without a bound starves other processes, so `turn` bounds it. After its turn the client
/// cools down: it asks for the lock again when the others have had their turns. The subscription stays during the
/// cool-down, because each release of another client brings its end nearer.
///
/// Turns cost memory and a timer, so a name has them only once somebody has waited for it. Before that, and where
/// config::turns is off, no waiter is a successor and there is no cool-down.
class hand_over final {
 public:
  hand_over() = default;
  hand_over(const hand_over&) = delete;
  hand_over& operator=(const hand_over&) = delete;

  /// Somebody waits for the name, here or elsewhere: once. `here`: the hold of this client, or null. Without memory the
  /// name goes without turns.
  void share(const environment& env, const kind& of, const hold* here) noexcept;
  bool shared() const noexcept { return state_ != nullptr; }
  /// The name is closed: no cool-down is under way any more.
  void end() noexcept { state_.reset(); }

  // A turn of this client. The clock is read only where the name is shared.
  /// Redis has granted the lock: a turn begins, and ends the cool-down. So many wait behind the one that has it.
  void granted(time_point now, std::size_t waiting) noexcept;
  /// The waiter that may have the claim of this hold, which has ended; null: there is none, and the claim is released.
  /// `line`: null where nobody waits.
  const acquisition* successor(const hold& ended, const hold_host::handoff_offer& offer, const waiting_line* line,
                               time_point now, double drift) const;
  /// The successor has the claim. There was one.
  void passed() noexcept;
  /// The claim is released instead.
  void release_begins(time_point now) noexcept;
  /// Redis has confirmed the release, and has told so many subscribers. A cool-down begins, if others may want the
  /// lock; its end is told to `host`.
  void release_ends(const clock& time, std::uint64_t subscribers, const waiting_line* line, line_host& host) noexcept;

  // The others.
  /// A message says that the lock was freed: true if this client itself has told so.
  bool hears_itself(const clock& time) noexcept;
  /// The lock was asked for, and somebody else has it. The longest time to wait before asking again.
  nanoseconds found_busy(const clock& time) noexcept;
  /// Waiters of this client ask no earlier.
  time_point cool_down_until() const noexcept { return state_ ? state_->window.cool_down_until() : time_point(); }
  bool cools_down() const noexcept { return state_ && state_->alarm.due(); }
  /// Waits for the end of the cool-down. At line_host::cool_down_ends() once more, because a release that was heard
  /// meanwhile may have prolonged it. False: it is over.
  bool cool_down(time_point now, line_host& host) noexcept;

 private:
  struct state {
    state(timers& alarms, handoff_window first) noexcept : window(first), alarm(alarms) {}

    handoff_window window;
    timer alarm;  // runs while others have their turns
  };

  std::unique_ptr<state> state_;  // from the first waiter on
};

}  // namespace holdfast::detail
