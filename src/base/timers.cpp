// SPDX-License-Identifier: BSL-1.0
#include "base/timers.hpp"

namespace holdfast::detail {

void timer_queue::add(place& place, time_point when, action act) noexcept {
  place.when_ = when;
  place.serial_ = ++serial_;
  place.act_ = std::move(act);
  places_.insert(place);
}

void timer_queue::remove(place& place) noexcept {
  places_.erase(places_.iterator_to(place));
  const auto dropped = std::move(place.act_);  // what it captured may come back to us, or own the place
}

void timer_queue::clear() noexcept {
  while (!empty()) remove(*places_.begin());
}

std::optional<time_point> timer_queue::earliest() const noexcept {
  if (empty()) return std::nullopt;
  return places_.begin()->when_;
}

void timer_queue::run_due(time_point now) {
  while (any_due(now)) {
    auto& first = *places_.begin();
    places_.erase(places_.begin());  // taken out first: the action may add and remove timers
    const auto act = std::move(first.act_);
    act();  // may destroy the place
  }
}

}  // namespace holdfast::detail
