// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <atomic>
#include <memory>

#include "base/direct_executor.hpp"
#include "base/fork_guard.hpp"
#include "base/lease_clock.hpp"
#include "base/reserved_block.hpp"
#include "base/timers.hpp"

namespace holdfast::detail {

/// The real timers: one timerfd on CLOCK_BOOTTIME for all of them, so that they fire in time after a suspend.
///
/// Decision: one timerfd, with linger. Every command has a deadline and nearly none is reached, so timers are started
/// and cancelled all the time. Asio's timers would cost a system call or a wake-up for many of them, and steady_timer
/// stops while the machine sleeps. When the last timer is cancelled, the kernel's wait is shortened to a millisecond.
/// The next command usually comes within it. The price: an io_context without work returns up to a millisecond later.
///
/// Used on the strand only. The last owner calls close(); actions that are pending then are dropped.
class asio_timers final : public timers, public std::enable_shared_from_this<asio_timers> {
 public:
  /// Throws boost::system::system_error if the process can open no descriptor.
  /// `on_wake`: called at each wake-up, before the actions that are due.
  explicit asio_timers(
      const direct_strand& strand, timer_queue::action on_wake = [] {});
  asio_timers(const asio_timers&) = delete;
  asio_timers& operator=(const asio_timers&) = delete;

  void schedule(timer_queue::place& place, time_point when, timer_queue::action act) noexcept override;
  void cancel(timer_queue::place& place) noexcept override;
  void close();

 private:
  struct wake;
  using handler_block = reserved_block<512, reusable_block>;

  void wake_at(time_point when);
  void wait();
  void woken();
  void wait_for_next();

  const direct_strand strand_;
  boost::asio::posix::stream_descriptor descriptor_;  // its handler enters the strand
  timer_queue::action on_wake_;
  timer_queue queue_;
  handler_block room_;  // for the handler of the descriptor, so that a timer can be started without memory
  time_point wake_ = time_point::max();  // when the kernel will wake us; max: it will not
  std::atomic<bool> waiting_{false};     // a handler of the descriptor is on its way
  const fork_guard here_;                // the descriptor's time and its expirations are the parent's in a child
};

}  // namespace holdfast::detail
