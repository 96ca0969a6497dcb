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

/// Rounded up. A wait that is too long is the longest there is; one that is negative, or no number, is 0.
inline milliseconds wait_of(wide_milliseconds wanted) {
  if (!(wanted > wide_milliseconds::zero())) return milliseconds::zero();
  if (wanted >= wide_milliseconds(milliseconds::max())) return milliseconds::max();
  return std::chrono::ceil<milliseconds>(wanted);
}
}  // namespace detail

/// What every blocking lock is: Lockable and TimedLockable. std::unique_lock, std::scoped_lock, std::lock and
/// std::condition_variable_any take it as they take a std::recursive_timed_mutex.
///
/// The owner is the thread. A thread that holds the lock takes it again (not a simple_mutex, see there), and gives it
/// back as often. Two objects of one client and one name are one lock: a thread re-enters by the second what it holds
/// by the first. Each object gives back what was taken through it, the newest first; only the thread that has taken it
/// can do so.
///
/// A lock can be lost while it is held: unlock() says nothing of that, since it runs in destructors. Ask held(), have
/// get_stop_token() tell, let check() throw, or use with_lock().
///
/// What ends early:
/// - The object is destroyed or assigned to: its holds are released in the background, whoever has them, and their
///   stops are requested. Threads that wait in it get closed.
/// - A thread ends that holds: its holds are released in the background, since nobody else could give them back.
/// - The client ends: its holds are over at once (held() is false), threads that wait get shutting_down, and so does
///   every later call; a call about a hold gets closed. unlock() does nothing then. The object may outlive its client.
/// - fork(): in the child every call that takes or asks throws shutting_down, and a call about a hold throws closed.
///   There held() is false, unlock() and destructors do nothing. The parent holds on.
///
/// A call that waits stops its thread, and the thread of the client works for it. Made by that thread itself (in an
/// observer, in a coroutine on the client's executor) it would wait indefinitely: it throws
/// boost::system::errc::resource_deadlock_would_occur instead, and has done nothing. Nor may that thread wait for
/// another thread that is in such a call: never notify a condition_variable_any there that waits with one of these
/// locks, since notify_one() and notify_all() wait for a waiter's unlock(). In a callback of a stop token all of this
/// is allowed. Let no exception leave a callback or an observer: the standard library ends the program for it.
///
/// std::condition_variable_any::wait() ends the program, by the standard, where the lock cannot be taken again (lock()
/// throws): end the threads that wait so before the client is shut down, drained or destroyed.
///
/// All functions may be called from any thread, except moves of the same object. Destroying it while other threads wait
/// in it is defined, as above; a call that begins afterwards is not.
class HOLDFAST_EXPORT lockable {
 public:
  lockable(lockable&&) noexcept = default;
  lockable& operator=(lockable&&) noexcept;

  /// Waits its turn, as long as it takes, also through outages of Redis. If a try_lock() of this thread has failed
  /// beside a lock that it held, since its last lock(), whatever it has got meanwhile, it first rests for 1 ms to 1 s:
  /// threads in std::lock would hinder each other indefinitely.
  /// Throws as holdfast::mutex::lock(), and resource_deadlock_would_occur; closed if this object was moved from.
  void lock();

  /// False: someone else holds it, or waits for it in this client. Takes no longer than a command. Throws as
  /// holdfast::mutex::try_lock(), and as lock().
  [[nodiscard]] bool try_lock();

  /// Waits at most `wait`, rounded up to milliseconds; 0 or less: one attempt, as try_lock(). False: not had in time.
  /// Throws as holdfast::mutex::try_lock_for(), and as lock().
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return try_lock_within(detail::wait_of(wait));
  }

  /// The same until `when`, by its clock, also where that is set meanwhile. In the past: one attempt, as try_lock().
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& when) {
    const detail::wide_milliseconds end = when.time_since_epoch();
    auto left = end - Clock::now().time_since_epoch();
    do {
      if (try_lock_within(detail::wait_of(left))) return true;
      left = end - Clock::now().time_since_epoch();
    } while (left.count() > 0);
    return false;
  }

  /// Gives back the newest hold that this thread has taken through this object. Waits for the answer of Redis, one
  /// command timeout at most. Never throws: what fails goes to the observer (release_failed), and what is not known to
  /// be released ends with its TTL. A hold that was lost is given up, and no other is touched.
  /// By a thread that has none: does nothing, and the observer hears foreign_unlock.
  void unlock() noexcept;

  // Of the newest hold that this thread has taken through this object.
  /// True only while it is exclusive, by a comparison of clocks; no I/O. False also without a hold.
  [[nodiscard]] bool held() const noexcept;
  /// How long held() will at least stay true without a renewal; 0 when it is false.
  [[nodiscard]] milliseconds valid_for() const noexcept;
  /// Nothing while it is held(). Throws lost or closed when it is over, and its text has the cause; not_held without
  /// one. Redis is not asked, for one lock or for several.
  void check() const;
  /// Requested when this hold is lost, also if only its unlock() finds that out, or when its client or its object ends;
  /// never when it is given back. held() is false before. A std::stop_callback on it runs on a second thread of the
  /// client: it may block and call whatever it likes, also notify a condition variable; the locks go on. But the
  /// callbacks of one client run one after the other: all later stops wait for it, and so does the end of the client.
  /// Asks nobody. Throws not_held without a hold, closed if the object has ended.
  [[nodiscard]] std::stop_token get_stop_token() const;
  /// lease::renew(): raises the TTL now, to `ttl` (0: the TTL it was taken with; else 10 ms to 24 h). Throws as that.
  void renew(milliseconds ttl = milliseconds::zero());
  /// lease::feed(): starts the time of max_hold anew. Nothing without a hold.
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
