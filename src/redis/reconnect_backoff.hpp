// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

#include "base/backoff.hpp"

namespace holdfast::redis {

/// Pure: the time at which the next attempt to connect may start. After a healthy second or a long silence that is at
/// once, otherwise after growing, jittered pauses. There are at most ten attempts a second, and at most one if the
/// cause does not mend itself.
class reconnect_backoff {
 public:
  using time_point = detail::time_point;
  using duration = detail::lease_clock::duration;

  explicit reconnect_backoff(duration cap) noexcept : backoff_(std::chrono::milliseconds{50}, cap) {}

  time_point not_before() const noexcept { return not_before_; }

  /// The link leads to another server from now on. Its first attempt starts at once.
  void forget(time_point now) noexcept {
    backoff_.reset();
    flapping_.reset();
    started_.fill({});
    fresh_ = true;
    pause(now, {});
  }
  void on_attempt(time_point now, detail::random_source& random) {
    if (std::exchange(fresh_, false)) backoff_.next(random);  // its first delay is none: that was this attempt
    started_[next_++ % started_.size()] = now;
  }
  void on_ready(time_point now) noexcept { ready_ = now; }
  /// `idle`: the connection was silent for long, so a load balancer may have forgotten it. That is not flapping.
  void on_lost(time_point now, bool idle, detail::random_source& random) {
    backoff_.reset();  // it was there: what failed before is over
    fresh_ = idle || now - ready_ >= healthy;
    if (fresh_) {
      flapping_.reset();
      return pause(now, {});
    }
    backoff_.next(random);
    auto delay = flapping_.next(random);
    if (delay == duration{}) delay = flapping_.next(random);
    pause(now, delay);
  }
  void on_failed(time_point now, bool mends_itself, detail::random_source& random) {
    pause(now, std::max(backoff_.next(random), mends_itself ? duration{} : hopeless));
  }

 private:
  static constexpr duration healthy = std::chrono::seconds{1};
  static constexpr duration hopeless = std::chrono::seconds{1};

  void pause(time_point now, duration delay) {
    const auto tenth_last = started_[next_ % started_.size()];
    not_before_ = std::max(now + delay, tenth_last + std::chrono::seconds{1});
  }

  detail::reconnect_backoff backoff_;
  // A connection that comes and goes is up half of the time, so its pauses are shorter than those of an unreachable
  // server.
  detail::reconnect_backoff flapping_{std::chrono::milliseconds{50}, std::chrono::milliseconds{400}};
  std::array<time_point, 10> started_{};  // ring of the last attempts
  std::size_t next_ = 0;
  bool fresh_ = true;
  time_point ready_{};
  time_point not_before_{};
};

}  // namespace holdfast::redis
