// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/error.hpp>
#include <holdfast/export.hpp>
#include <holdfast/worker_state.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace holdfast {

namespace detail {
class worker_record;
struct access;
}  // namespace detail

/// A keep_running() at one instant.
struct worker_status {
  worker_state state = worker_state::stopped;
  std::chrono::nanoseconds elapsed{};  ///< time in this state by the client's clock; 0: not begun
  std::string name{};                  ///< the lock that it runs under; else the last one
  std::uint64_t runs = 0;              ///< runs that have begun
  std::uint64_t failures = 0;          ///< runs that threw or lost their lease, and calls of lock() that threw
  std::uint64_t failures_in_row = 0;   ///< those that count for the next backoff
  std::string last_failure{};          ///< what() of the last failure
  error_code last_code{};              ///< its code; none: it was no system_error
};

/// Shows the state of a keep_running() to any thread: for a health check, a page or a test.
///
///     holdfast::worker_monitor monitor;
///     asio::co_spawn(io, holdfast::keep_running(lock, body, {.monitor = &monitor}), asio::detached);
///     … monitor.status().state == holdfast::worker_state::running
///
/// Copies show the same keep_running(), and may outlive it and its client. One at a time: a second keep_running() with
/// this monitor throws invalid_argument. A later one begins with zeros.
class HOLDFAST_EXPORT worker_monitor {
 public:
  /// Throws std::bad_alloc.
  worker_monitor();

  /// Sends nothing to Redis, waits for nothing. Throws std::bad_alloc.
  worker_status status() const;

 private:
  friend detail::access;
  std::shared_ptr<detail::worker_record> record_;
};

}  // namespace holdfast
