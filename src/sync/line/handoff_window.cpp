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

// The probe is due by the clock, and not a fixed time after this object's beginning. A name that is free for an instant
// gets a new object, and the probe would never come.
time_point handoff_window::first_probe(time_point now, duration between_looks) noexcept {
  if (between_looks == duration::zero()) return {};
  return now - now.time_since_epoch() % probe_interval + probe_interval;
}

void handoff_window::begin(time_point now, std::size_t waiting) noexcept {
  began_ = now;
  probing_ = false;
  waited_ = waiting;
  passed_ = 0;
}

// `least` spares a client with few waiters a round trip for each of its short holds. `longest` bounds the wait of other
// clients, however many wait here.
bool handoff_window::may_pass(time_point now) const noexcept {
  return now < began_ + longest && (passed_ < waited_ || now < began_ + least);
}

void handoff_window::release_begins(time_point now) noexcept {
  releasing_ = true;
  // The answer decides. Until then a new waiter must not be faster than the clients that the release notifies.
  cool_down_until_ = now + longest;
  heard_early_ = false;
}

// The message and the answer come by two connections, in either order. hear() may have seen the message already.
void handoff_window::release_ends(time_point now, std::uint64_t subscribers, own_notification own) noexcept {
  releasing_ = false;
  const bool notified_itself = own != own_notification::none && subscribers > 0;
  others_ = subscribers - (notified_itself ? 1 : 0);
  last_release_ = now;
  probing_ = false;
  cools_down_by_time_ = others_ > 0 && beside_barging_clients(now);
  found_busy_times_ = 0;
  // Without other subscribers only clients that poll may want the lock.
  if (others_ == 0)
    cool_down_until_ = now + cool_down_of_probe(now);
  else if (cools_down_by_time_)
    cool_down_until_ = now + std::min<duration>(others_ * std::clamp(now - began_, quickest, longest),
                                                longest_cool_down_beside_barging);
  else
    cool_down_until_ = now + std::min<duration>(first_cool_down + others_ * slack * pace_, longest);
  // A lingering line without a cool-down has no subscription any more. The next message is then another client's.
  const bool hears = own == own_notification::heard || cool_down_until_ > now;
  own_notification_until_ = notified_itself && hears && !heard_early_ ? now + longest : time_point();
}

// A probe costs the waiters of this client a part of their time, so it is rare. Barging clients that were found get one
// after each turn.
handoff_window::duration handoff_window::cool_down_of_probe(time_point now) noexcept {
  const bool due = now >= next_probe_ || beside_barging_clients(now);
  if (between_looks_ == duration::zero() || passed_ == 0 || !due) return duration::zero();
  next_probe_ = now + probe_interval;
  probing_ = true;
  return between_looks_;
}

bool handoff_window::hear(time_point now) noexcept {
  if (releasing_ && !heard_early_) return heard_early_ = true;
  if (now < own_notification_until_) {
    own_notification_until_ = {};
    return true;
  }
  // A release during a probe is a turn too many: its client did not cool down.
  if (std::exchange(probing_, false)) barging_until_ = now + barging_assumed_for;
  const bool last_of_them = others_ == 1;
  if (others_ > 0) --others_;
  pace_ = std::clamp<duration>(now - last_release_, quickest, slowest);
  last_release_ = now;
  // Barging clients release again and again. Their messages must not prolong the cool-down, but they show that the lock
  // moves, so `longest` is enough.
  if (cools_down_by_time_) {
    cool_down_until_ = std::min<time_point>(cool_down_until_, now + longest);
    return false;
  }
  cool_down_until_ = now + std::min<duration>(others_ * slack * pace_, longest);
  // All notified clients have had their turns, so a probe costs this client least now.
  if (last_of_them && now >= next_probe_) {
    probing_ = true;
    next_probe_ = now + probe_interval;
    cool_down_until_ = now + std::min<duration>(pace_ / 2, longest_probe);
  }
  return false;
}

handoff_window::duration handoff_window::found_busy(time_point now) noexcept {
  // A client that asks much later meets an ordinary holder, and not a barging client that used the probe.
  if (std::exchange(probing_, false) && now < cool_down_until_ + longest) barging_until_ = now + barging_assumed_for;
  const bool again = cools_down_by_time_ && found_busy_times_++ < most_probes_beside_barging;
  return again ? probe_pause : duration::max();
}

}  // namespace holdfast::detail
