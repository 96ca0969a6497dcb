// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking/lockable.hpp>
#include <holdfast/export.hpp>
#include <holdfast/latch.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace holdfast::blocking {

namespace detail {
class io_thread;
}  // namespace detail

/// holdfast::latch for threads, with the members of std::latch. Each function waits for its answer.
///
///     holdfast::blocking::client redis({.url = "redis://localhost"});
///     auto loaded = redis.latch("loaded:v42");
///     loaded.arrive_and_wait();
///
/// Each throws as the function of holdfast::latch with its name, and with these rules of lockable: on the client's own
/// thread resource_deadlock_would_occur; closed if this object was moved from; shutting_down when the client ends or
/// drains, and in a child process after fork(). All functions may be called from any thread, except moves of the same
/// object.
class HOLDFAST_EXPORT latch {
 public:
  latch(latch&&) noexcept = default;
  latch& operator=(latch&&) noexcept;
  ~latch();

  /// The largest count that try_set() takes.
  static constexpr std::ptrdiff_t max() noexcept { return 2'147'483'647; }

  /// Sets the count: 1 to max(), else invalid_argument. Returns false while a count is left of another call.
  [[nodiscard]] bool try_set(std::ptrdiff_t count) const;
  /// Counts n down: 1 to max(), else invalid_argument.
  void count_down(std::ptrdiff_t n = 1) const;
  [[nodiscard]] bool try_wait() const;  ///< true if the latch is open; a snapshot
  void wait() const;                    ///< waits until the latch is open

  /// Waits at most `wait`, rounded up to milliseconds; 0 or less: as try_wait(). Returns false if the latch was closed.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period>& wait) const {
    return wait_within(detail::wait_of(wait));
  }
  /// The same until `when`, as lockable::try_lock_until().
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(const std::chrono::time_point<Clock, Duration>& when) const {
    return detail::try_until(when, [this](milliseconds wait) { return wait_within(wait); });
  }

  void arrive_and_wait(std::ptrdiff_t n = 1) const;  ///< count_down(n), then wait()
  std::ptrdiff_t count() const;                      ///< the count; 0: open, or not set; a snapshot

  const std::string& name() const noexcept;  ///< empty if this object was moved from

 private:
  friend detail::access;
  latch(std::shared_ptr<detail::io_thread>, holdfast::latch);
  bool wait_within(milliseconds wait) const;

  std::shared_ptr<detail::io_thread> io_;
  holdfast::latch of_;
};

}  // namespace holdfast::blocking
