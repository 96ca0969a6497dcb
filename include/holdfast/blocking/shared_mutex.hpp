// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking/mutex.hpp>
#include <holdfast/export.hpp>
#include <holdfast/shared_mutex.hpp>

#include <chrono>
#include <memory>
#include <utility>

namespace holdfast::blocking {

/// holdfast::shared_mutex for threads, with the members of std::shared_timed_mutex. std::shared_lock reads.
/// std::unique_lock, std::lock_guard and std::scoped_lock write.
///
///     holdfast::blocking::client redis({.url = "redis://localhost"});
///     auto prices = redis.shared_mutex("prices");
///     std::shared_lock reading(prices);
///
/// The owner is the thread, with the rules of lockable. A thread that writes may also read, and a thread that reads may
/// read again. A thread that reads and calls lock(), try_lock() or one of its forms gets already_held at once.
/// std::shared_timed_mutex has undefined behaviour there.
///
/// The members of mutex are about the write side: held(), check(), get_stop_token(), is_locked(), hold_count() and
/// holder(). reader() has the same members for the read side. remaining_ttl() and force_unlock() are about both sides.
/// with_lock(shared, f) writes, and with_lock(shared.reader(), f) reads.
///
/// Otherwise both sides are as lockable. A read nested in a write keeps others out: downgrade() lets readers in.
class HOLDFAST_EXPORT shared_mutex : public mutex {
 public:
  shared_mutex(shared_mutex&&) noexcept = default;
  shared_mutex& operator=(shared_mutex&&) noexcept;
  /// As lockable. The threads that wait on either side get closed before the holds of either are released.
  ~shared_mutex();

  /// Waits until nobody else writes. A newcomer also lets a waiting writer go first. Throws as
  /// holdfast::shared_mutex::lock_shared(), and as lock(); never already_held.
  void lock_shared() { reader_.lock(); }

  /// Returns false if another thread or client writes, if a writer waits, or if another call of this client waits for
  /// the lock. Takes no longer than a command. Throws as holdfast::shared_mutex::try_lock_shared(), and as lock();
  /// never already_held.
  [[nodiscard]] bool try_lock_shared() { return reader_.try_lock(); }

  /// Waits at most `wait`, rounded up to milliseconds; 0 or less: one attempt. Throws as try_lock_shared().
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) {
    return reader_.try_lock_for(wait);
  }

  /// The same until `when`, as lockable::try_lock_until().
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& when) {
    return reader_.try_lock_until(when);
  }

  /// Releases the newest read hold that this thread has taken through this object, as lockable::unlock(). If other
  /// readers of this client share the hold, it sends nothing.
  void unlock_shared() noexcept { reader_.unlock(); }

  /// Turns the newest write hold that this thread has taken through this object into a read hold. No other owner can
  /// write in between. Waiting readers are woken. End it by unlock_shared(). A std::unique_lock would unlock the write
  /// side: call its release() first. A stop token of the write hold is not requested by a later loss: take
  /// reader().get_stop_token(). Takes no longer than a command. Throws:
  /// - not_held: this thread writes by no hold of this object
  /// - already_held: the write hold has others nested in it
  /// - lost, closed, corrupt_lock, unconfirmed and not_replicated: the write hold is lost; call unlock()
  /// - unreachable, server_refused, overloaded, or another refusal of the server: the thread writes as before
  ///
  /// Source: holdfast::shared_mutex::downgrade().
  void downgrade();

  /// The read side as a lock. lock() is lock_shared(), and unlock() is unlock_shared(). Use it for with_lock, for
  /// multi_lock, and to look at a read hold: `prices.reader().held()`. It lives as long as this object.
  mutex& reader() noexcept { return reader_; }
  const mutex& reader() const noexcept { return reader_; }

  /// The number of read holds, as holdfast::shared_mutex::read_holds(), but it waits. It also throws as lock().
  unsigned read_holds() const;

 private:
  friend detail::access;
  shared_mutex(mutex writer, mutex reader, holdfast::shared_mutex);
  void end() noexcept;

  mutex reader_;
  holdfast::shared_mutex of_;
};

}  // namespace holdfast::blocking
