// SPDX-License-Identifier: BSL-1.0
#include "sim/scheduler.hpp"

#include <algorithm>

namespace holdfast::sim {

std::optional<time_point> scheduler::next() const {
  auto first = events_.earliest();
  for (const auto* p : processes_)
    if (const auto own = p->next()) first = first ? std::min(*first, *own) : *own;
  return first;
}

bool scheduler::step() {
  settle();
  const auto when = next();
  if (!when) return false;
  time_.advance_to(*when);
  events_.run_due(now());
  settle();
  if (on_step) on_step();
  return true;
}

void scheduler::run_until(time_point end) {
  settle();
  while (next() && *next() <= end) step();
  time_.advance_to(end);
}

void scheduler::settle() {
  for (auto* p : processes_) p->run();
}

}  // namespace holdfast::sim
