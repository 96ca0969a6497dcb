// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <optional>

#include "base/random.hpp"
#include "base/timers.hpp"
#include "testing/sim/network.hpp"
#include "testing/sim/scheduler.hpp"

namespace holdfast::sim {

/// One client's process: handlers and timers, run one after the other at one instant; when both are due, chance decides
/// which go first, as it does in an event loop that comes late. While it is paused its clock goes on and nothing of it
/// runs.
class process final : public detail::timers, public participant {
 public:
  process(const virtual_clock& time, detail::random_source& order)
      : time_(time), order_(order), strand_(asio::make_strand(asio::any_io_executor(io_.get_executor()))) {}

  const sim::strand& strand() const noexcept { return strand_; }
  asio::io_context& context() noexcept { return io_; }

  void schedule(detail::timer_queue::place& p, time_point when, detail::timer_queue::action act) noexcept override {
    queue_.add(p, when, std::move(act));
  }
  void cancel(detail::timer_queue::place& p) noexcept override { queue_.remove(p); }

  /// Runs what was posted and what is due, and what these cause, unless it is paused.
  void run() override;
  /// When it wants to run next without being sent anything; nothing while it is paused.
  std::optional<time_point> next() const override { return paused_ ? std::nullopt : queue_.earliest(); }
  bool has_timers() const noexcept { return !queue_.empty(); }
  void pause(bool on) noexcept { paused_ = on; }
  bool paused() const noexcept { return paused_; }
  /// A timer is due: nobody has run it.
  bool behind() const;
  /// Nothing of it runs any more.
  void end() { queue_.clear(); }

 private:
  /// Runs what was posted; false: nothing was.
  bool poll();

  const virtual_clock& time_;
  detail::random_source& order_;
  asio::io_context io_{1};
  sim::strand strand_;
  detail::timer_queue queue_;
  bool paused_ = false;
};

}  // namespace holdfast::sim
