// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/scheduler.hpp"

namespace holdfast::sim {

void scheduler::at(time_point when, detail::function<void()> act) {
  events_.emplace(when, std::move(act));
  announce(when);
}

std::optional<time_point> scheduler::next() const {
  auto first = next_event();
  for (const auto* participant : participants_)
    if (const auto own = participant->next()) first = first ? std::min(*first, *own) : *own;
  return first;
}

bool scheduler::step() {
  settle();
  const auto when = next();
  if (!when) return false;
  time_.advance_to(*when);
  run_events();
  settle();
  if (on_step) on_step();
  return true;
}

void scheduler::run_until(time_point end) {
  settle();
  while (next() && *next() <= end) step();
  time_.advance_to(end);
}

void scheduler::run_due() {
  settle();
  while (next() && *next() <= now()) step();
}

void scheduler::pause_until(time_point end) {
  for (auto first = next_event(); first && *first <= end; first = next_event()) {
    time_.advance_to(*first);
    run_events();
  }
  time_.advance_to(end);
}

std::optional<time_point> scheduler::next_event() const {
  return events_.empty() ? std::nullopt : std::optional(events_.begin()->first);
}

// Also what the events themselves add for now.
void scheduler::run_events() {
  while (!events_.empty() && events_.begin()->first <= now()) events_.extract(events_.begin()).mapped()();
}

void scheduler::settle() {
  // Those that run may add and remove others.
  for (std::size_t i = 0; i < participants_.size(); ++i) participants_[i]->run();
}

}  // namespace holdfast::sim
