// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <memory>

#include "base/fork_guard.hpp"
#include "base/lease_clock.hpp"
#include "base/reserved_block.hpp"
#include "base/timers.hpp"

namespace holdfast::detail {

/// The real timers: one timerfd on CLOCK_BOOTTIME for all of them, so that they fire in time after a suspend.
///
/// Cheap where timers are mostly cancelled, one per command: when the last one is, the kernel's wait is not ended but
/// shortened to a millisecond, in which the next one usually comes. So pending timers hold the io_context, and none
/// pending for a millisecond more.
///
/// Used on the strand only. The last owner calls close(); actions that are pending then are dropped.
class asio_timers final : public timers, public std::enable_shared_from_this<asio_timers> {
 public:
  using strand_type = boost::asio::strand<boost::asio::any_io_executor>;

  /// Throws boost::system::system_error when there is no descriptor to be had.
  /// `on_wake`: called each time that it wakes, before what is due.
  explicit asio_timers(
      const strand_type& strand, timer_queue::action on_wake = [] {});
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

  boost::asio::posix::basic_stream_descriptor<strand_type> descriptor_;
  timer_queue::action on_wake_;
  timer_queue queue_;
  handler_block room_;  // for the handler of the descriptor, so that a timer can be started without memory
  time_point wake_ = time_point::max();  // when the kernel will wake us; max: it will not
  std::atomic<bool> waiting_{false};     // a handler of the descriptor is on its way
  const fork_guard here_;                // the descriptor's time and its expirations are the parent's in a child
};

}  // namespace holdfast::detail
