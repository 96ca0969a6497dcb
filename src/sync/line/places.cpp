// SPDX-License-Identifier: BSL-1.0
#include "sync/line/places.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace holdfast::detail {

void places::joined() noexcept {
  ++waiting_;
  fill();
}

void places::left(std::size_t nth) noexcept {
  HOLDFAST_ASSERT(waiting_ > 0);
  --waiting_;
  if (nth < size_) {
    std::rotate(order_.begin() + nth, order_.begin() + nth + 1, order_.begin() + size_);
    --size_;
  }
  fill();
}

// The place that was taken is the first waiter's from here on: it goes with that waiter. If it is unknown, the answer
// to the next command tells which places stand.
void places::taken(std::optional<std::uint8_t> place) noexcept {
  if (!place) {
    known_ = 0;
    return;
  }
  may_ &= without(*place);
  known_ &= without(*place);
  const auto end = order_.begin() + size_;
  const auto found = std::find(order_.begin(), end, *place);
  if (found != end) std::rotate(order_.begin(), found, found + 1);
}

void places::listens(std::uint8_t place) noexcept {
  listening_ |= bit(place);
  known_ &= without(place);
}

bool places::wants_to_show(bool attempting) const noexcept {
  if (shows_ || leaves_) return false;
  const auto ours = wanted_set();
  if (attempting && size_ > 0 && (may_ & bit(order_[0])) != 0) return false;
  if ((may_ & ~ours) != 0) return true;
  const auto shown = next(attempting);
  return std::ranges::any_of(shown.all(), [&](std::uint8_t place) { return all_again_ || (known_ & bit(place)) == 0; });
}

places::list places::show(bool attempting) noexcept {
  HOLDFAST_ASSERT(wants_to_show(attempting));
  const auto shown = next(attempting);
  for (const auto place : shown.all()) sent_ |= bit(place);
  shows_ = true;
  all_again_ = false;
  return shown;
}

// A place is shown behind those before it, so a place without a subscription holds up the ones after it. A place that
// an attempt has taken is not shown again.
places::list places::next(bool attempting) const noexcept {
  list shown;
  for (const auto place : wanted().subspan(attempting && size_ > 0 ? 1 : 0)) {
    if ((listening_ & bit(place)) == 0) break;
    shown.add(place);
  }
  return shown;
}

void places::shown() noexcept {
  HOLDFAST_ASSERT(shows_);
  shows_ = false;
  may_ = known_ = sent_;
  sent_ = 0;
  fill();
}

void places::not_shown(bool may_have_run) noexcept {
  HOLDFAST_ASSERT(shows_);
  shows_ = false;
  if (may_have_run) {
    may_ |= sent_;
    known_ = 0;
  }
  sent_ = 0;
  all_again_ = true;
}

// Places that a refused release has left there are dead: nobody listens for them.
void places::released(bool unanswered) noexcept {
  leaves_ = false;
  known_ = 0;
  if (!unanswered) may_ = 0;
  fill();
}

places::set places::wanted_set() const noexcept {
  set all = 0;
  for (const auto place : wanted()) all |= bit(place);
  return all;
}

// Also a waiter behind the sixteenth gets a place when one is free.
void places::fill() noexcept {
  auto used = static_cast<set>(wanted_set() | may_ | sent_);
  for (std::uint8_t place = 0; place < most && size_ < std::min(waiting_, most); ++place)
    if ((used & bit(place)) == 0) order_[size_++] = place;
}

}  // namespace holdfast::detail
