// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/set.hpp>
#include <cstdint>
#include <optional>
#include <utility>

#include <holdfast/export.hpp>

#include "base/function.hpp"
#include "base/lease_clock.hpp"

namespace holdfast::detail {

/// Pure: the timers in the order of their times. Timers of one instant fire in the order in which they were started.
class HOLDFAST_EXPORT timer_queue {
 public:
  using action = function<void(), 2>;  // small: a timer is part of each waiter

  /// Each timer owns its place in the queue, so that a start cannot fail for want of memory.
  class place : public boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>> {
   public:
    place() = default;
    place(const place&) = delete;
    place& operator=(const place&) = delete;

    /// When it will fire; empty when it is in no queue.
    std::optional<time_point> due() const noexcept { return is_linked() ? std::optional(when_) : std::nullopt; }
    friend bool operator<(const place& left, const place& right) noexcept {
      return left.when_ != right.when_ ? left.when_ < right.when_ : left.serial_ < right.serial_;
    }

   private:
    friend timer_queue;
    time_point when_;
    std::uint64_t serial_ = 0;
    action act_;
  };

  timer_queue() = default;
  timer_queue(const timer_queue&) = delete;
  timer_queue& operator=(const timer_queue&) = delete;
  ~timer_queue() { clear(); }

  /// The place is in no queue.
  void add(place& place, time_point when, action act) noexcept;
  /// The place is in this queue.
  void remove(place& place) noexcept;
  void clear() noexcept;
  std::optional<time_point> earliest() const noexcept;
  bool empty() const noexcept { return places_.empty(); }
  bool any_due(time_point now) const noexcept { return !empty() && places_.begin()->when_ <= now; }
  /// Runs all timers that are due at `now`, also those that the actions themselves add for `now` or before.
  void run_due(time_point now);

 private:
  boost::intrusive::set<place, boost::intrusive::constant_time_size<false>> places_;
  std::uint64_t serial_ = 0;
};

/// The timers that are passed in. Used on the client's strand only; actions run there, never inside schedule().
class timers {
 public:
  virtual void schedule(timer_queue::place& place, time_point when, timer_queue::action act) noexcept = 0;
  virtual void cancel(timer_queue::place& place) noexcept = 0;

 protected:
  ~timers() = default;
};

/// One shot that is cancelled when it is started anew, stopped or destroyed.
class timer {
 public:
  explicit timer(timers& service) noexcept : service_(service) {}
  ~timer() { stop(); }

  void start(time_point when, timer_queue::action act) noexcept {
    stop();
    service_.schedule(place_, when, std::move(act));
  }
  void stop() noexcept {
    if (place_.is_linked()) service_.cancel(place_);
  }
  /// When it will fire; empty when it is not running.
  std::optional<time_point> due() const noexcept { return place_.due(); }

 private:
  timers& service_;
  timer_queue::place place_;
};

}  // namespace holdfast::detail
