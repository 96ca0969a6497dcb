// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "sim/process.hpp"

namespace holdfast::sim {

/// What happens next: events of the world outside and the processes' own timers, in the order of virtual time; of one
/// instant in the order in which they were made.
class scheduler {
 public:
  time_point now() const noexcept { return time_.now(); }
  const virtual_clock& time() const noexcept { return time_; }

  void at(time_point when, detail::timer_queue::action act) { events_.add(when, std::move(act)); }
  void after(nanoseconds delay, detail::timer_queue::action act) { at(now() + delay, std::move(act)); }
  void add(process& p) { processes_.push_back(&p); }
  void remove(process& p) { std::erase(processes_, &p); }

  /// Goes to the next instant at which something happens and runs all of it; false when nothing will ever happen again.
  bool step();
  /// Steps until `end`; time is `end` after it.
  void run_until(time_point end);
  /// When something happens next.
  std::optional<time_point> next() const;
  void clear() { events_ = {}; }
  /// Called after each instant.
  std::function<void()> on_step;

 private:
  void settle();

  virtual_clock time_;
  detail::timer_queue events_;
  std::vector<process*> processes_;
};

}  // namespace holdfast::sim
