// SPDX-License-Identifier: BSL-1.0
#include "sync/line/turn.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::detail {

namespace {

/// A rest ends by the releases that it hears. Its time is for those who have heard and do not want the lock: too short,
/// it would ask in vain while others have their turn.
constexpr auto slack = 2;

}  // namespace

// By the clock, not by when this turn was made: where nobody waits for an instant, the next is a new one.
time_point turn::first_moment(time_point now, duration between_looks) noexcept {
  if (between_looks == duration::zero()) return {};
  return now - now.time_since_epoch() % moments_apart + moments_apart;
}

void turn::begin(time_point now, std::size_t waiting) noexcept {
  began_ = now;
  in_moment_ = false;
  waited_ = waiting;
  passed_ = 0;
}

bool turn::may_pass(time_point now) const noexcept {
  return now < began_ + longest && (passed_ < waited_ || now < began_ + least);
}

void turn::release_begins(time_point now) noexcept {
  releasing_ = true;
  rests_until_ = now + longest;
  heard_early_ = false;
}

// The message and the answer come by two connections, in either order.
void turn::release_ends(time_point now, std::uint64_t told, echo own) noexcept {
  releasing_ = false;
  const bool echoes = own != echo::none && told > 0;
  others_ = told - (echoes ? 1 : 0);
  last_release_ = now;
  in_moment_ = false;
  rests_by_time_ = others_ > 0 && beside_rivals(now);
  asked_in_vain_ = 0;
  if (others_ == 0)
    rests_until_ = now + left_to_those_who_look(now);
  else if (rests_by_time_)
    rests_until_ =
        now + std::min<duration>(others_ * std::clamp(now - began_, quickest, longest), longest_rest_beside_rivals);
  else
    rests_until_ = now + std::min<duration>(first_rest + others_ * slack * pace_, longest);
  const bool hears = own == echo::heard || rests_until_ > now;
  echo_until_ = echoes && hears && !heard_early_ ? now + longest : time_point();
}

// A moment costs those who wait here a part of their time, and a rival that was found is left each one.
turn::duration turn::left_to_those_who_look(time_point now) noexcept {
  const bool due = now >= next_moment_ || beside_rivals(now);
  if (between_looks_ == duration::zero() || passed_ == 0 || !due) return duration::zero();
  next_moment_ = now + moments_apart;
  in_moment_ = true;
  return between_looks_;
}

bool turn::hear(time_point now) noexcept {
  if (releasing_ && !heard_early_) return heard_early_ = true;
  if (now < echo_until_) {
    echo_until_ = {};
    return true;
  }
  if (std::exchange(in_moment_, false)) rivals_until_ = now + rivals_stay;
  const bool last_of_them = others_ == 1;
  if (others_ > 0) --others_;
  pace_ = std::clamp<duration>(now - last_release_, quickest, slowest);
  last_release_ = now;
  if (rests_by_time_) {
    rests_until_ = std::min<time_point>(rests_until_, now + longest);
    return false;
  }
  rests_until_ = now + std::min<duration>(others_ * slack * pace_, longest);
  if (last_of_them && now >= next_moment_) {
    in_moment_ = true;
    next_moment_ = now + moments_apart;
    rests_until_ = now + std::min<duration>(pace_ / 2, longest_moment);
  }
  return false;
}

turn::duration turn::found_busy(time_point now) noexcept {
  // One who asks much later does not find a rival that used the moment.
  if (std::exchange(in_moment_, false) && now < rests_until_ + longest) rivals_until_ = now + rivals_stay;
  const bool again = rests_by_time_ && asked_in_vain_++ < most_times_beside_rivals;
  return again ? again_beside_rivals : duration::max();
}

}  // namespace holdfast::detail
