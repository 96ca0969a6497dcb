// SPDX-License-Identifier: BSL-1.0
#include "testing/virtual_timers.hpp"

namespace holdfast::testing {

void virtual_timers::schedule(detail::timer_queue::place& place, time_point when,
                              detail::timer_queue::action act) noexcept {
  queue_.add(place, when, std::move(act));
  plan_.announce(when);
}

void virtual_timers::close() {
  closed_ = true;
  queue_.clear();
}

void virtual_timers::run() {
  if (const auto when = next(); !when || *when > plan_.now()) return;
  waking_ = true;
  home_->post([self = shared_from_this()] { self->wake(); });
}

std::optional<time_point> virtual_timers::next() const { return waking_ ? std::nullopt : queue_.earliest(); }

void virtual_timers::wake() {
  waking_ = false;
  if (closed_) return;
  on_wake_();
  queue_.run_due(plan_.now());
}

}  // namespace holdfast::testing
