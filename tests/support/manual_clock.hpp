// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "base/timers.hpp"

namespace holdfast::test {

/// Time that moves only when the test says so. now() may be called from any thread.
class manual_clock final : public detail::clock {
 public:
  detail::time_point now() const noexcept override {
    return detail::time_point{detail::lease_clock::duration{now_.load()}};
  }
  void set(detail::time_point when) noexcept { now_ = when.time_since_epoch().count(); }
  /// Moves time alone, without running timers: what a suspended machine or a busy executor sees.
  void skip(detail::lease_clock::duration by) noexcept { set(now() + by); }

 private:
  std::atomic<detail::lease_clock::rep> now_{std::chrono::nanoseconds{std::chrono::hours{1}}.count()};
};

/// Timers that run when the test advances the clock, each at its own instant.
class manual_timers final : public detail::timers {
 public:
  explicit manual_timers(manual_clock& clock) noexcept : clock_(clock) {}

  void schedule(detail::timer_queue::place& p, detail::time_point when,
                detail::timer_queue::action act) noexcept override {
    queue_.add(p, when, std::move(act));
  }
  void cancel(detail::timer_queue::place& p) noexcept override { queue_.remove(p); }

  /// Runs what is due until `by` from now, in order; the clock shows each timer's own instant while it runs.
  void advance(detail::lease_clock::duration by) { advance_to(clock_.now() + by); }
  void advance_to(detail::time_point target) {
    settle();
    while (queue_.earliest() && *queue_.earliest() <= target) step(*queue_.earliest());
    if (target > clock_.now()) clock_.set(target);
  }
  /// Goes to the next timer and runs it, and all of the same instant; false when there is none.
  bool advance_to_next() {
    settle();
    if (!queue_.earliest()) return false;
    step(*queue_.earliest());
    return true;
  }
  /// Runs what is overdue after manual_clock::skip().
  void run_due() {
    queue_.run_due(clock_.now());
    settle();
  }

  std::optional<detail::time_point> next_due() const { return queue_.earliest(); }
  bool idle() const noexcept { return queue_.empty(); }

  /// Called before the first and after each instant: the pump of the other fakes (fake_topology::run).
  std::function<void()> on_step;

 private:
  void settle() {
    if (on_step) on_step();
  }
  void step(detail::time_point when) {
    if (when > clock_.now()) clock_.set(when);
    run_due();
  }

  manual_clock& clock_;
  detail::timer_queue queue_;
};

}  // namespace holdfast::test
