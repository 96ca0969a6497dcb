// SPDX-License-Identifier: BSL-1.0
#include "sync/turn.hpp"

#include <algorithm>

namespace holdfast::detail {

void turn::begin(time_point now, std::size_t waiting) noexcept {
  began_ = now;
  waited_ = waiting;
  passed_ = 0;
}

bool turn::may_pass(time_point now) const noexcept {
  return now < began_ + longest && (passed_ < waited_ || now < began_ + least);
}

void turn::release_begins() noexcept {
  releasing_ = true;
  heard_early_ = false;
}

// The message and the answer come by two connections, in either order.
void turn::release_ends(time_point now, std::uint64_t told, bool listening) noexcept {
  releasing_ = false;
  const bool echoes = listening && told > 0;
  echo_until_ = echoes && !heard_early_ ? now + longest : time_point();
  others_ = told - (echoes ? 1 : 0);
  last_release_ = now;
  rests_until_ = others_ == 0 ? now : now + std::min<duration>(first_rest + others_ * pace_, longest);
}

bool turn::hear(time_point now) noexcept {
  if (releasing_ && !heard_early_) return heard_early_ = true;
  if (now < echo_until_) {
    echo_until_ = {};
    return true;
  }
  if (others_ > 0) --others_;
  pace_ = std::clamp<duration>(now - last_release_, quickest, slowest);
  last_release_ = now;
  rests_until_ = now + std::min<duration>(others_ * pace_, longest);
  return false;
}

}  // namespace holdfast::detail
