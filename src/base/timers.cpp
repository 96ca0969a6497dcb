// SPDX-License-Identifier: BSL-1.0
#include "base/timers.hpp"

namespace holdfast::detail {

timer_queue::key timer_queue::add(time_point when, action act) {
  const key k{when, ++serial_};
  actions_.emplace(k, std::move(act));
  return k;
}

std::optional<time_point> timer_queue::earliest() const {
  if (actions_.empty()) return std::nullopt;
  return actions_.begin()->first.when;
}

void timer_queue::run_due(time_point now) {
  while (any_due(now)) {
    const auto node = actions_.extract(actions_.begin());  // taken out first: the action may add and remove timers
    node.mapped()();
  }
}

void timer::start(time_point when, timer_queue::action act) {
  stop();
  key_ = service_.schedule(when, [this] { fire(); });
  act_ = std::move(act);
}

void timer::fire() {
  key_.reset();
  const auto act = std::exchange(act_, {});
  act();  // may destroy *this: nothing after it
}

void timer::cancel() {
  service_.cancel(*std::exchange(key_, std::nullopt));
  const auto dropped = std::exchange(act_, {});
}

std::optional<time_point> timer::due() const noexcept { return key_ ? std::optional(key_->when) : std::nullopt; }

}  // namespace holdfast::detail
