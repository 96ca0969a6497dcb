// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>

#include "testing/sim/network.hpp"
#include "testing/sim/scheduler.hpp"

namespace holdfast::testing {

using detail::time_point;

/// A client's timers on the virtual clock. Their actions run on the client's strand.
///
/// Decision: timers of Asio stay in real time. They could be virtual only if the user's code named another timer class.
/// Nothing of the kit waits for them, and a coroutine that waits for one can be cancelled. A test that wants to wait in
/// virtual time calls sleep_for().
class virtual_timers final : public detail::timers,
                             public sim::participant,
                             public std::enable_shared_from_this<virtual_timers> {
 public:
  /// `on_wake`: called at each wake-up, before the actions that are due.
  virtual_timers(sim::scheduler& plan, sim::home_ptr at, detail::timer_queue::action on_wake)
      : plan_(plan), home_(std::move(at)), on_wake_(std::move(on_wake)) {}

  void schedule(detail::timer_queue::place& place, time_point when, detail::timer_queue::action act) noexcept override;
  void cancel(detail::timer_queue::place& place) noexcept override { queue_.remove(place); }
  /// Drops pending actions. Nothing runs any more.
  void close();

  void run() override;
  std::optional<time_point> next() const override;

 private:
  void wake();

  sim::scheduler& plan_;
  const sim::home_ptr home_;
  const detail::timer_queue::action on_wake_;
  detail::timer_queue queue_;
  bool waking_ = false;  // a handler is on its way
  bool closed_ = false;
};

}  // namespace holdfast::testing
