// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_options.hpp>
#include <holdfast/mutex.hpp>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace holdfast {
namespace asio = boost::asio;
using std::chrono::milliseconds;

/// At most so many at once, over all processes: Redisson's RPermitExpirableSemaphore. acquire() gives a lease, like
/// that of a mutex. It is renewed while it lives and lost by the same clock. Its permits come back after its TTL when
/// its process dies.
///
/// Never re-enters: each call takes permits of its own, whoever calls. A task that waits for permits which it holds
/// itself waits indefinitely.
///
/// The number of permits: client::expirable_semaphore(name, permits) counts only where nobody has set the number. The
/// first one stands until set_permits(). Redis keeps it in the key `name`, which has no TTL. The permits that are out
/// are in `{name}:timeout`. Programs that make names dynamically delete both.
///
/// Fairness: waiters of one client are served first in, first out. Permits pass from lease to lease inside a client for
/// at most 20 ms (config::turns). A waiter that wants several keeps newcomers of every holdfast client out until there
/// are enough. So it waits for the longest lease, and 20 ms. Clients of Redisson do not heed that.
///
/// Never more than the number of permits believe to hold one, if clocks run equally fast within config::drift. There
/// is one exception. Redisson ends permits by the clock of its own machine. A machine whose clock is ahead by two
/// thirds of a TTL may take a permit that is held.
///
/// Every function may be called from any thread, copies what it needs, and returns a lazy awaitable. It resumes on the
/// awaiting coroutine's executor, and is cancelled, as a function of mutex. Cancellation leaves no permit behind.
/// Throws as a function of mutex. Each also throws invalid_argument for a number outside its range, and nothing is sent
/// then.
///
/// The ACL user needs the permissions of a mutex, and for the names behind the key_prefix `p`:
/// `~{p* ~holdfast_turn:{p* &redisson_sc:{p*`, and the commands GET, SET, INCRBY, TIME, ZADD, ZREM, ZCARD, ZCOUNT,
/// ZSCORE, ZRANGEBYSCORE. connect() does not check these.
class HOLDFAST_EXPORT expirable_semaphore {
 public:
  static constexpr unsigned most_at_once = 100;  ///< permits of one call

  /// Waits for n permits, which come together or not at all. The lease has all n: unlock() gives all back, and the loss
  /// of one loses the lease. n: 1 to most_at_once, and no more than the number of permits.
  /// Throws as mutex::lock(); never already_held or too_many_reentries.
  /// Source: Redisson's "RPermitExpirableSemaphore.acquire".
  asio::awaitable<lease> acquire(unsigned n = 1, lock_options = {}) const;

  /// Returns empty if fewer than n are left, if another waiter of this client is first, or if a waiter anywhere keeps
  /// newcomers out. Takes no longer than one command, as mutex::try_lock(), and throws as it does.
  asio::awaitable<std::optional<lease>> try_acquire(unsigned n = 1, lock_options = {}) const;

  /// Waits at most `wait`; 0: as try_acquire; negative: invalid_wait. As mutex::try_lock_for().
  asio::awaitable<std::optional<lease>> try_acquire_for(milliseconds wait, unsigned n = 1, lock_options = {}) const;

  /// The permits that are left, by one read; a snapshot. A permit whose TTL is over counts as left. Throws as
  /// mutex::is_locked(), and corrupt_lock.
  asio::awaitable<unsigned> available() const;

  /// Sets the number of permits: 1 to 2^31-1. Permits that are out stay valid. If more are out than the new number,
  /// none is given until enough have come back. A repeated command changes nothing. Wakes waiters. Throws as
  /// mutex::force_unlock(), except unconfirmed.
  /// Source: Redisson's "setPermits".
  asio::awaitable<void> set_permits(unsigned permits) const;

  /// Takes back all permits that are out, whoever has them, and wakes waiters. Returns how many. Their holders learn of
  /// it at their next renewal. Throws as mutex::force_unlock().
  asio::awaitable<unsigned> force_release() const;

  /// One permit, as a lock: for with_lock and for code that takes a mutex. Its is_locked() says whether no permit is
  /// left. Its force_unlock() takes all permits back. any_of() and multi_lock refuse it (invalid_config).
  mutex as_mutex() const;

  const std::string& name() const noexcept;

 private:
  friend detail::access;
  expirable_semaphore(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>);

  std::weak_ptr<detail::core> core_;
  std::shared_ptr<const detail::lock_keys> keys_;
};

}  // namespace holdfast
