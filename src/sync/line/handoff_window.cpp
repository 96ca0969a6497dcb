// SPDX-License-Identifier: BSL-1.0
#include "sync/line/handoff_window.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::detail {

namespace {

/// A rest ends by the releases that it hears. Its time is for those who have heard and do not want the lock: too short,
/// it would ask in vain while others have their turn.
constexpr auto slack = 2;

}  // namespace

// By the clock, not by when this turn was made: where nobody waits for an instant, the next is a new one.
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

bool handoff_window::may_pass(time_point now) const noexcept {
  return now < began_ + longest && (passed_ < waited_ || now < began_ + least);
}

void handoff_window::release_begins(time_point now) noexcept {
  releasing_ = true;
  cool_down_until_ = now + longest;
  heard_early_ = false;
}

// The message and the answer come by two connections, in either order.
void handoff_window::release_ends(time_point now, std::uint64_t subscribers, own_notification own) noexcept {
  releasing_ = false;
  const bool notified_itself = own != own_notification::none && subscribers > 0;
  others_ = subscribers - (notified_itself ? 1 : 0);
  last_release_ = now;
  probing_ = false;
  cools_down_by_time_ = others_ > 0 && beside_barging_clients(now);
  asked_in_vain_ = 0;
  if (others_ == 0)
    cool_down_until_ = now + left_to_those_who_look(now);
  else if (cools_down_by_time_)
    cool_down_until_ = now + std::min<duration>(others_ * std::clamp(now - began_, quickest, longest),
                                                longest_cool_down_beside_barging);
  else
    cool_down_until_ = now + std::min<duration>(first_cool_down + others_ * slack * pace_, longest);
  const bool hears = own == own_notification::heard || cool_down_until_ > now;
  own_notification_until_ = notified_itself && hears && !heard_early_ ? now + longest : time_point();
}

// A moment costs those who wait here a part of their time, and a rival that was found is left each one.
handoff_window::duration handoff_window::left_to_those_who_look(time_point now) noexcept {
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
  if (std::exchange(probing_, false)) barging_until_ = now + barging_assumed_for;
  const bool last_of_them = others_ == 1;
  if (others_ > 0) --others_;
  pace_ = std::clamp<duration>(now - last_release_, quickest, slowest);
  last_release_ = now;
  if (cools_down_by_time_) {
    cool_down_until_ = std::min<time_point>(cool_down_until_, now + longest);
    return false;
  }
  cool_down_until_ = now + std::min<duration>(others_ * slack * pace_, longest);
  if (last_of_them && now >= next_probe_) {
    probing_ = true;
    next_probe_ = now + probe_interval;
    cool_down_until_ = now + std::min<duration>(pace_ / 2, longest_probe);
  }
  return false;
}

handoff_window::duration handoff_window::found_busy(time_point now) noexcept {
  // One who asks much later does not find a rival that used the moment.
  if (std::exchange(probing_, false) && now < cool_down_until_ + longest) barging_until_ = now + barging_assumed_for;
  const bool again = cools_down_by_time_ && asked_in_vain_++ < most_probes_beside_barging;
  return again ? probe_pause : duration::max();
}

}  // namespace holdfast::detail
