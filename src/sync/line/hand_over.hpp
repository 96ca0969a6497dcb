// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/timers.hpp"
#include "sync/hold/hold.hpp"
#include "sync/line/handoff_window.hpp"
#include "sync/line/waiting_line.hpp"

namespace holdfast::detail {

/// The remaining part of a claim that may be passed on.
struct claim_left {
  time_point valid_until;
  milliseconds may_live;  // the longest time that its key may still exist
  unsigned replicas;      // that have the grant
};
/// Pure. True: the claim gives a waiter all that it asks for, except the token of a fenced kind.
bool may_take_over(const terms& asked, const claim_left& left, time_point now, double drift) noexcept;

/// Hands the lock of one name from a hold to the next waiter of this client, and then leaves it to other clients.
///
/// Decision: a hand-over passes a claim from one hold to the next, and sends nothing. No hand-over is therefore late,
/// lost or repeated. The successor is the first waiter of the line, if the claim gives it all that it asks for. A
/// hand-over prolongs nothing: the claim needs two thirds of the TTL, as each renewed claim has while Redis answers.
/// The TTL may not be longer than a grant would give either, because others wait that long for a killed process.
///
/// Decision: an unsound claim is released and not passed. It is unsound while it is suspended or in doubt. A message
/// that the lock was freed puts it in doubt, and the confirmation would come too late for the hand-over.
///
/// Decision: the grant of a fenced lock takes a block of 1000 tokens, so a hand-over needs no command for its token.
/// The block ends at the server's clock. If it began there, the counter would run ahead of the clock, and a lost
/// counter would bring smaller tokens. All holds of a turn have one owner field; lease::id() adds a number to tell them
/// apart.
///
/// A client that hands over without a bound starves other processes, so handoff_window bounds it. After its turn the
/// client cools down: it asks for the lock again when the others have had their turns. The subscription stays during
/// the cool-down, because each release of another client brings its end nearer.
///
/// Turns cost memory and a timer, so a name has them only after its first waiter. Before that no waiter is a successor,
/// and there is no cool-down. The same holds where config::turns is off. The turn of a claim that is held then began
/// with its grant: the bound counts from there.
///
/// Decision: the stints are here, and not in the claims. There are as many claims as held locks, and few have turns.
class hand_over final {
 public:
  hand_over() = default;
  hand_over(const hand_over&) = delete;
  hand_over& operator=(const hand_over&) = delete;

  /// Called once, when a caller waits for the name, here or in another client. Without memory the name has no turns.
  void share(const environment& env, const kind& of) noexcept;
  bool shared() const noexcept { return state_ != nullptr; }
  /// The name is closed: no cool-down is under way any more.
  void end() noexcept { state_.reset(); }

  // A turn of this client. The clock is read only where the name is shared.
  /// Redis has granted this claim. A turn begins, and the cool-down ends. `waiting`: the waiters behind its holder.
  void granted(const claim& by, time_point now, std::size_t waiting) noexcept;
  /// The claim serves this turn. Without memory it is not passed on.
  void serve(const claim& by, const stint& turn) noexcept;
  /// The waiter that may take over the claim of this ended hold. Null: there is none, and the claim is released.
  /// `line`: null if no call waits.
  const acquisition* successor(const hold& ended, const hold_host::handoff_offer& offer, const waiting_line* line,
                               time_point now, double drift) noexcept;
  /// The successor has the claim.
  void passed(const claim& by) noexcept;
  /// The claim is released instead.
  void release_begins(const claim& by, time_point now) noexcept;
  /// The claim is lost, or has become another one.
  void lost(const claim& by) noexcept {
    if (state_) end_turn(by, {});
  }
  /// Redis has confirmed the release, and has notified this number of subscribers. A cool-down begins if other clients
  /// may want the lock. `ended` is called at its end.
  void release_ends(const clock& time, std::uint64_t subscribers, const waiting_line* line,
                    timer_queue::action ended) noexcept;
  /// No release is under way any more.
  void all_released() noexcept {
    if (state_) state_->window.all_released();
  }

  // The others.
  /// A message says that the lock was freed. True: it is the own notification of this client.
  bool hears_itself(const clock& time) noexcept;
  /// Redis says busy. `barging`: the holder's client takes no turns. Returns the longest time to wait before asking
  /// again.
  nanoseconds found_busy(const clock& time, bool barging, nanoseconds may_last) noexcept;
  /// Waiters of this client ask no earlier.
  time_point cool_down_until() const noexcept { return state_ ? state_->window.cool_down_until() : time_point(); }
  bool cools_down() const noexcept { return state_ && state_->alarm.due(); }
  /// Waits for the end of the cool-down, and calls `ended` then. False: it is over. `ended` calls it once more, because
  /// a message may have prolonged the cool-down meanwhile.
  bool cool_down(time_point now, timer_queue::action ended) noexcept;

 private:
  struct state {
    state(timers& alarms, handoff_window first) noexcept : window(first), alarm(alarms) {}

    handoff_window window;
    timer alarm;  // runs while others have their turns
    std::vector<std::pair<const claim*, stint>> turns;
  };

  /// Null: the claim serves no turn.
  stint* turn_of(const claim& by) noexcept;
  /// Returns the turn of the claim, which ends. `unknown`: the claim served none.
  stint end_turn(const claim& by, const stint& unknown) noexcept;

  std::unique_ptr<state> state_;  // from the first waiter on
};

}  // namespace holdfast::detail
