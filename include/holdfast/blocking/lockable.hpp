// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>

namespace holdfast::blocking {
using std::chrono::milliseconds;

namespace detail {
class lock_core;
struct access;

/// Exact enough for any clock, and too wide to overflow.
using wide_milliseconds = std::chrono::duration<long double, std::milli>;

/// Rounded up. If the wait is too long, the longest possible one. If it is negative or not a number, 0.
inline milliseconds wait_of(wide_milliseconds wanted) {
  if (!(wanted > wide_milliseconds::zero())) return milliseconds::zero();
  if (wanted >= wide_milliseconds(milliseconds::max())) return milliseconds::max();
  return std::chrono::ceil<milliseconds>(wanted);
}

/// Calls `try_for(milliseconds)` until it returns true, or `when` is over by its clock. At least once.
template <class Clock, class Duration, class Try>
bool try_until(const std::chrono::time_point<Clock, Duration>& when, Try try_for) {
  const wide_milliseconds end = when.time_since_epoch();
  auto left = end - Clock::now().time_since_epoch();
  do {
    if (try_for(wait_of(left))) return true;
    left = end - Clock::now().time_since_epoch();
  } while (left.count() > 0);
  return false;
}
}  // namespace detail

/// Base of every blocking lock: Lockable and TimedLockable. std::unique_lock, std::scoped_lock, std::lock and
/// std::condition_variable_any take it as they take a std::recursive_timed_mutex.
///
/// The owner is the thread. A thread that holds the lock can lock it again, and releases it as often. A simple_mutex
/// does not allow this. Two objects of one client and one name are one lock: through the second a thread re-enters its
/// hold of the first. Each object releases what was taken through it, the newest first. Only the thread that took a
/// hold can release it.
///
/// A lock can be lost while it is held. unlock() does not report that, since it runs in destructors. Check held(), use
/// get_stop_token(), let check() throw, or use with_lock().
///
/// Early ends:
/// - The object is destroyed or assigned to: its holds are released in the background, whichever threads have them, and
///   their stops are requested. Threads that wait in it get closed.
/// - A thread that holds ends: its holds are released in the background, since no other thread can release them.
/// - The client ends: its holds are over at once (held() is false), and threads that wait get shutting_down. So does
///   every later call; a call about a hold gets closed. unlock() does nothing then. The object may outlive its client.
/// - fork(): in the child every call that takes or asks throws shutting_down, and a call about a hold throws closed.
///   There held() is false, and unlock() and destructors do nothing. The parent keeps its holds.
///
/// A call that waits blocks its thread, and the client's thread works for it. On the client's thread itself (in an
/// observer, in a coroutine on the client's executor) it would wait indefinitely. There it does nothing and throws
/// boost::system::errc::resource_deadlock_would_occur. That thread must not wait for another thread in such a call
/// either. Never notify a condition_variable_any there that waits with one of these locks: notify_one() and
/// notify_all() wait for a waiter's unlock(). In a callback of a stop token all of this is allowed. Let no exception
/// leave a callback or an observer: the standard library ends the program for it.
///
/// If lock() throws in std::condition_variable_any::wait(), the standard ends the program, because the lock cannot be
/// taken again. End the threads that wait there before the client is shut down, drained or destroyed.
///
/// All functions may be called from any thread, except moves of the same object. Destroying it while other threads wait
/// in it is defined, as above. A call that begins afterwards is undefined.
class HOLDFAST_EXPORT lockable {
 public:
  lockable(lockable&&) noexcept = default;
  lockable& operator=(lockable&&) noexcept;

  /// Waits its turn, as long as it takes, also through outages of Redis. First backs off for 1 ms to 1 s if, since its
  /// last lock(), a try_lock() of this thread failed while it held a lock. It does so even if it has got other locks
  /// since. Without the backoff, threads in std::lock would hinder each other indefinitely.
  /// Throws as holdfast::mutex::lock(), and resource_deadlock_would_occur; closed if this object was moved from.
  void lock();

  /// Returns false if another owner holds it, or waits for it in this client. Takes no longer than a command. Throws as
  /// holdfast::mutex::try_lock(), and as lock().
  [[nodiscard]] bool try_lock();

  /// Waits at most `wait`, rounded up to milliseconds; 0 or less: one attempt, as try_lock(). Returns false if the lock
  /// was not granted in time. Throws as holdfast::mutex::try_lock_for(), and as lock().
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return try_lock_within(detail::wait_of(wait));
  }

  /// The same until `when`, by its clock, even if that clock is set meanwhile. In the past: one attempt, as try_lock().
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& when) {
    return detail::try_until(when, [this](milliseconds wait) { return try_lock_within(wait); });
  }

  /// Releases the newest hold that this thread has taken through this object. Waits for the answer of Redis, at most
  /// one command timeout. Never throws. A failure goes to the observer (release_failed). A hold that is not known to be
  /// released ends with its TTL. A hold that was lost is given up, and no other hold is changed.
  /// By a thread without a hold: does nothing, and the observer receives foreign_unlock.
  void unlock() noexcept;

  // For the newest hold that this thread has taken through this object.
  /// True only while the hold is exclusive, by a comparison of clocks; no I/O. False without a hold.
  [[nodiscard]] bool held() const noexcept;
  /// How long held() stays true at least, without a renewal; 0 if it is false.
  [[nodiscard]] milliseconds valid_for() const noexcept;
  /// Returns while held(). Throws lost or closed when the hold is over, and its text has the cause. Throws not_held
  /// without a hold. Sends nothing to Redis, for one lock or for several.
  void check() const;
  /// The token of the hold. Its stop is requested when the hold is lost, even if only its unlock() finds that out, or
  /// when its client or its object ends. It is never requested by a release. held() becomes false before the request. A
  /// std::stop_callback on the token runs on a second thread of the client. It may block and call anything, and notify
  /// a condition variable; the locks go on. But callbacks of one client run one after the other. A slow one delays all
  /// later stops and the end of the client. Sends nothing to Redis. Throws not_held without a hold, closed if the
  /// object has ended.
  [[nodiscard]] std::stop_token get_stop_token() const;
  /// lease::renew(): raises the TTL now, to `ttl`: 10 ms to 24 h; 0: the TTL that it was taken with. Throws as that.
  void renew(milliseconds ttl = milliseconds::zero());
  /// lease::feed(): restarts the time of max_hold. Does nothing without a hold.
  void feed() noexcept;

 protected:
  explicit lockable(std::shared_ptr<detail::lock_core>) noexcept;
  ~lockable();

 private:
  friend detail::access;
  bool try_lock_within(milliseconds wait);

  std::shared_ptr<detail::lock_core> core_;
};

}  // namespace holdfast::blocking
