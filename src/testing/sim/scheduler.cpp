// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

void scheduler::at(time_point when, detail::function<void()> act) {
  events_.emplace(when, std::move(act));
  announce(when);
}

void scheduler::send(const flow& on, time_point arrives, detail::function<void()> act, bool private_to_ends) {
  if (holds_flows_)
    held_.push_back({&on, arrives, std::move(act), private_to_ends});
  else
    at(arrives, std::move(act));
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

void scheduler::hold_flows(bool on) {
  holds_flows_ = on;
  if (on) return;
  for (auto& each : std::exchange(held_, {})) at(each.when, std::move(each.act));
}

std::vector<scheduler::first_of_flow> scheduler::held() const {
  std::vector<first_of_flow> all;
  for (const auto& each : held_)
    if (std::none_of(all.begin(), all.end(), [&](const auto& first) { return first.on == each.on; }))
      all.push_back({each.on, each.private_to_ends});
  return all;
}

bool scheduler::holds(const flow& on) const {
  return std::any_of(held_.begin(), held_.end(), [&](const auto& each) { return each.on == &on; });
}

void scheduler::let_in(const flow& on) {
  const auto first = std::find_if(held_.begin(), held_.end(), [&](const auto& each) { return each.on == &on; });
  auto act = std::move(first->act);
  held_.erase(first);
  act();
  run_events();
  settle();
  if (on_step) on_step();
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
