// SPDX-License-Identifier: BSL-1.0
#include "sync/line/handoff_window.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::detail {

namespace {

/// Most cool-downs end by the messages that come. The time is for notified clients that do not want the lock. A shorter
/// one finds the lock busy while others have their turns.
constexpr auto slack = 2;

}  // namespace

// The opening is due by the clock, and not a fixed time after this object's beginning. A name that is free for an
// instant gets a new object, and the opening would never come.
time_point handoff_window::first_opening(time_point now, duration between_looks) noexcept {
  if (between_looks == duration::zero()) return {};
  return now - now.time_since_epoch() % opening_interval + opening_interval;
}

void handoff_window::begin(time_point now) noexcept {
  open_ = false;
  if (turns_beside_ > 0) --turns_beside_;
  owed_ = {};
  credit_ = late_since_ == time_point() ? duration::zero() : now - std::exchange(late_since_, {});
}

// `least` spares a client with few waiters a round trip for each of its short holds. `longest` bounds the wait of other
// clients, however many wait here.
bool handoff_window::may_pass(const stint& turn, time_point now) const noexcept {
  const auto holds = turn.passed + 1;
  const bool in_time = now < turn.began + longest || (beside_barging() && holds < most_holds_beside_barging);
  const bool goes_on = turn.passed < turn.waiting || (beside_barging() && holds < least_holds_beside_barging);
  return in_time && (goes_on || now < turn.began + least);
}

void handoff_window::release_begins(time_point now, const stint& turn) noexcept {
  ++releasing_;
  ended_ = turn;
  // The answer decides. Until then a new waiter must not be faster than the clients that the release notifies.
  cool_down(now, longest);
}

// The message and the answer come by two connections, in either order. hear() may have seen the message already.
void handoff_window::release_ends(time_point now, std::uint64_t subscribers, own_notification own) noexcept {
  if (releasing_ > 0) --releasing_;
  const bool heard_already = heard_early_ > 0;
  if (heard_already) --heard_early_;
  const bool notified_itself = own != own_notification::none && subscribers > 0;
  const auto others = subscribers - (notified_itself ? 1 : 0);
  const auto turn = now - ended_.began;
  last_release_ = now;
  probes_ = 0;
  open_ = false;
  own_hold_ = turn / (ended_.passed + 1);
  others_ = beside_barging() ? 0 : others;
  owed_ = {};
  // Without other subscribers only clients that poll may want the lock.
  if (others == 0) {
    cool_down(now, cool_down_of_opening(now));
  } else if (beside_barging()) {
    const duration all_turns = others * std::min<duration>(turn, longest_owed / others);
    owed_ = all_turns - std::min(all_turns, credit_);
    cool_down(now, std::min(owed_, longest_silence()));
  } else {
    cool_down(
        now, std::min<duration>(first_cool_down + others_ * slack * std::clamp(interval_, quickest, slowest), longest));
  }
  // A lingering line without a cool-down has no subscription any more. The next message is then another client's.
  const bool hears = own == own_notification::heard || cool_down_until_ > now;
  if (now >= own_notification_until_) own_notifications_ = 0;
  if (!notified_itself || !hears || heard_already) return;
  ++own_notifications_;
  own_notification_until_ = now + longest;
}

// Where this client has several claims, they end one after another. None of them prolongs a cool-down that goes on:
// with frequent releases it would not end, and the waiters would not see free permits.
void handoff_window::cool_down(time_point now, duration pause) noexcept {
  const bool goes_on = several_ && cool_down_until_ > now;
  cool_down_until_ = goes_on ? std::min(cool_down_until_, now + pause) : now + pause;
}

handoff_window::duration handoff_window::longest_silence() const noexcept {
  return std::clamp<duration>(slack * std::max(interval_, interval_before_), first_cool_down, longest);
}

time_point handoff_window::nearly_over() const noexcept {
  return last_release_ + std::max(std::min(interval_, interval_before_) - probe_ahead, duration::zero());
}

// An opening costs the waiters of this client a part of their time, so it is rare. Pollers that were found get one
// after each turn.
handoff_window::duration handoff_window::cool_down_of_opening(time_point now) noexcept {
  const bool due = now >= next_opening_ || now < pollers_until_;
  if (between_looks_ == duration::zero() || ended_.passed == 0 || !due) return duration::zero();
  next_opening_ = now + opening_interval;
  open_ = true;
  return between_looks_;
}

bool handoff_window::hear(time_point now) noexcept {
  if (heard_early_ < releasing_) {
    ++heard_early_;
    return true;
  }
  if (own_notifications_ > 0 && now < own_notification_until_) {
    --own_notifications_;
    return true;
  }
  interval_before_ = std::exchange(interval_, now - std::exchange(last_release_, now));
  probes_ = 0;
  if (others_ > 0) --others_;
  if (owed_ > duration::zero()) {
    owed_ -= std::min(owed_, interval_ < slack * own_hold_ ? own_hold_ : interval_);
    cool_down_until_ = now + std::min(owed_, longest_silence());
  } else if (beside_barging()) {
    cool_down_until_ = now;  // the lock may stay free: a busy answer leads to the end of the next hold
  } else {
    cool_down_until_ = now + std::min<duration>(others_ * slack * std::clamp(interval_, quickest, slowest), longest);
  }
  return false;
}

handoff_window::duration handoff_window::found_busy(time_point now, bool barging, duration may_last) noexcept {
  // A client that asks much later meets an ordinary holder, and not a poller that used the opening.
  if (std::exchange(open_, false) && now < cool_down_until_ + longest) pollers_until_ = now + poller_assumed_for;
  if (barging)
    turns_beside_ = turns_beside_barging;
  else if (beside_barging())
    --turns_beside_;
  if (!beside_barging()) return duration::max();
  if (now < paid_at()) {
    cool_down_until_ = std::min(paid_at(), now + std::min(longest_while_held, may_last));
    return cool_down_until_ - now;
  }
  if (late_since_ == time_point()) late_since_ = now;
  // A client that takes turns lets this one know of its release in time.
  if (!barging || probes_ == most_probes) return duration::max();
  if (now < nearly_over()) return nearly_over() - now;
  ++probes_;
  return probe_pause;
}

}  // namespace holdfast::detail
