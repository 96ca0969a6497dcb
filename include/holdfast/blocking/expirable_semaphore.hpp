// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking/lockable.hpp>
#include <holdfast/blocking/mutex.hpp>
#include <holdfast/blocking/with_lock.hpp>
#include <holdfast/expirable_semaphore.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lock_options.hpp>
#include <holdfast/owner.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace holdfast::blocking {

/// holdfast::expirable_semaphore for threads, with the members of std::counting_semaphore. Each acquire takes one
/// permit.
///
///     holdfast::blocking::client redis({.url = "redis://localhost"});
///     auto downloads = redis.expirable_semaphore("downloads", 3);
///     downloads.acquire();
///     …
///     downloads.release();
///
/// A permit belongs to the object that took it. Any thread may release it, and it outlives the thread that took it. It
/// is renewed until its release. When the process dies, it comes back after its TTL.
///
/// A permit can be lost while it is held. release() does not report that: use with_lock(semaphore, f).
///
/// While the client drains, only a thread whose permit or lock is still held may acquire. Every other thread gets
/// shutting_down.
///
/// Permits end early in the cases of lockable. When the object is destroyed or assigned to, its permits are released in
/// the background. When the client ends, they end at once. In a child process after fork() acquire() throws, and
/// release() does nothing.
///
/// Calls that wait have the rules of lockable: on the client's own thread they throw resource_deadlock_would_occur. All
/// functions may be called from any thread, except moves of the same object.
class HOLDFAST_EXPORT expirable_semaphore {
 public:
  expirable_semaphore(expirable_semaphore&&) noexcept = default;
  expirable_semaphore& operator=(expirable_semaphore&&) noexcept;
  ~expirable_semaphore();

  /// The greatest number of permits.
  static constexpr std::ptrdiff_t max() noexcept { return 2'147'483'647; }

  /// Waits for one permit, without a limit. Throws as holdfast::expirable_semaphore::acquire(), and
  /// resource_deadlock_would_occur; closed if this object was moved from.
  void acquire();

  /// Returns false if no permit is free, or if another waiter is first. Takes no longer than a command. Throws as
  /// holdfast::expirable_semaphore::try_acquire(), and as acquire().
  [[nodiscard]] bool try_acquire();

  /// Waits at most `wait`, rounded up to milliseconds; 0 or less: one attempt. Throws as
  /// holdfast::expirable_semaphore::try_acquire_for(), and as acquire().
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period>& wait) {
    return try_acquire_within(detail::wait_of(wait));
  }

  /// The same until `when`, as lockable::try_lock_until().
  template <class Clock, class Duration>
  [[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& when) {
    return detail::try_until(when, [this](milliseconds wait) { return try_acquire_within(wait); });
  }

  /// Gives back `n` permits of this object, from any thread: those that are lost first, then the newest. Waits for the
  /// answers of Redis, at most a command timeout each. A failure goes to the observer, as that of lockable::unlock().
  /// If the object has fewer, it gives all back and throws not_held. n: 0 or more, else invalid_argument.
  void release(std::ptrdiff_t n = 1);

  // As the functions of holdfast::expirable_semaphore, but they wait for the answer. They also throw as acquire().
  unsigned available() const;                      ///< number of free permits; a snapshot
  void set_permits(unsigned permits) const;        ///< sets the number of permits
  unsigned force_release() const;                  ///< takes back all permits of all holders; returns their number
  [[nodiscard]] blocking::mutex as_mutex() const;  ///< one permit, as a lock of the calling thread

  const std::string& name() const noexcept;  ///< empty if this object was moved from

 private:
  friend detail::access;
  expirable_semaphore(std::shared_ptr<detail::lock_core>, holdfast::expirable_semaphore);
  bool try_acquire_within(milliseconds wait);

  std::shared_ptr<detail::lock_core> core_;
  owner holder_;  // keeps all permits of this object, in place of a thread
  holdfast::expirable_semaphore of_;
};

/// Takes one permit, calls `f(std::stop_token)` on this thread, and gives the permit back: see with_lock(lock, f).
template <class F>
  requires std::invocable<F&, std::stop_token>
auto with_lock(const expirable_semaphore& on, F&& action) -> detail::section_value_t<F> {
  return with_lock(on.as_mutex(), std::forward<F>(action));
}

/// The same with a bounded wait: see try_with_lock_for(lock, wait, f).
template <class Rep, class Period, class F>
  requires std::invocable<F&, std::stop_token>
auto try_with_lock_for(const expirable_semaphore& on, const std::chrono::duration<Rep, Period>& wait, F&& action) {
  return try_with_lock_for(on.as_mutex(), wait, std::forward<F>(action));
}

}  // namespace holdfast::blocking
