// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <holdfast/export.hpp>

#include "base/function.hpp"
#include "base/lease_clock.hpp"

namespace holdfast::detail {

/// Pure: which action is due when. Actions of the same instant run in the order in which they were added.
class HOLDFAST_EXPORT timer_queue {
 public:
  using action = function<void()>;
  struct key {
    time_point when;
    std::uint64_t serial;
    auto operator<=>(const key&) const = default;
  };

  key add(time_point when, action act);
  void remove(const key& k) { actions_.erase(k); }
  std::optional<time_point> earliest() const;
  bool empty() const noexcept { return actions_.empty(); }
  bool any_due(time_point now) const noexcept { return !actions_.empty() && actions_.begin()->first.when <= now; }
  /// Runs what is due at `now`, also what the actions themselves add for `now` or before.
  void run_due(time_point now);

 private:
  std::map<key, action> actions_;
  std::uint64_t serial_ = 0;
};

/// The timers that are passed in. Used on the client's strand only; actions run there, never inside schedule().
class timers {
 public:
  virtual timer_queue::key schedule(time_point when, timer_queue::action act) = 0;
  virtual void cancel(const timer_queue::key& k) = 0;

 protected:
  ~timers() = default;
};

/// One shot that is cancelled when it is started anew, stopped or destroyed.
class timer {
 public:
  explicit timer(timers& service) noexcept : service_(service) {}
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;
  ~timer() { stop(); }

  void start(time_point when, timer_queue::action act);
  void stop() {
    if (key_) cancel();
  }
  /// When it will fire; empty when it is not running.
  std::optional<time_point> due() const noexcept;

 private:
  void fire();
  void cancel();

  timers& service_;
  timer_queue::action act_;  // here and not in the queue: what is queued is small enough not to be allocated
  std::optional<timer_queue::key> key_;
};

}  // namespace holdfast::detail
