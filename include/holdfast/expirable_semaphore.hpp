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

/// Lets at most a fixed number of holders work at once, over all processes: Redisson's RPermitExpirableSemaphore.
/// acquire() returns a lease, like that of a mutex. The lease is renewed while it lives, and lost by the same clock.
/// When its process dies, its permits come back after its TTL.
///
/// Never re-enters: each call takes new permits, also for the same owner. Take all permits in one call. Tasks that
/// together hold all permits and acquire more wait indefinitely.
///
/// The number of permits: the first acquire of a name sets it to `permits` of its client::expirable_semaphore(name,
/// permits). Only set_permits() changes it later. The key `name`, without TTL, has the number of free permits. The
/// permits that are out are in `{name}:timeout`. Programs that make names dynamically delete both keys once no program
/// uses the name.
///
/// Fairness: waiters of one client are served first in, first out. Permits pass from lease to lease inside a client for
/// at most 20 ms (config::turns). A waiter for several permits keeps newcomers of every holdfast client out until there
/// are enough. Its wait is about as long as the longest hold, and 20 ms more. Another client's waiter for several comes
/// after it. Clients of Redisson ignore that.
///
/// No more permits are held than their number, if Redis keeps its data and clocks run equally fast within
/// config::drift. There are three exceptions. After a smaller set_permits() more are held until they come back. After
/// force_release() more may be held until the holders' next renewal. Redisson ends permits by the clock of its own
/// machine. If this clock is ahead by two thirds of a TTL, Redisson may take a permit that is held.
///
/// While its slot moves in a cluster, leases are renewed, and a single permit is released. acquire() and the release of
/// several permits go on until the slot has moved. try_acquire(), available(), set_permits() and force_release() may
/// throw server_refused until then.
///
/// While the client drains, only a caller with a bound owner that holds a lease may acquire. Every other caller gets
/// shutting_down.
///
/// Every function may be called from any thread, copies its arguments, and returns a lazy awaitable. It resumes on the
/// awaiting coroutine's executor, and is cancelled, as a function of mutex. Cancellation leaves no permit behind.
/// Throws as a function of mutex. A number of permits outside its range throws invalid_argument, and nothing is sent.
///
/// The ACL user needs the permissions of a mutex and more. Keys and channel, for the key_prefix `p`:
/// `~{p* ~holdfast_turn:{p* &redisson_sc:{p*`. The commands GET, SET, INCRBY, TIME, ZADD, ZREM, ZCARD, ZCOUNT,
/// ZSCORE, ZRANGEBYSCORE. connect() does not check these.
class HOLDFAST_EXPORT expirable_semaphore {
 public:
  static constexpr unsigned most_at_once = 100;  ///< permits of one call

  /// Waits for n permits, which come together or not at all. The lease has all n: unlock() gives all back, and the loss
  /// of one loses the lease. n: 1 to most_at_once, and no more than `permits` of client::expirable_semaphore(). A
  /// number that set_permits() made smaller than n keeps the call waiting.
  /// Throws as mutex::lock(); never already_held or too_many_reentries.
  /// Source: Redisson's "RPermitExpirableSemaphore.acquire".
  asio::awaitable<lease> acquire(unsigned n = 1, lock_options = {}) const;

  /// Returns empty if fewer than n permits are free. Also returns empty if another waiter of this client is first, or
  /// if a waiter of another client keeps newcomers out. Takes no longer than one command, as mutex::try_lock(), and
  /// throws as it does.
  asio::awaitable<std::optional<lease>> try_acquire(unsigned n = 1, lock_options = {}) const;

  /// Waits at most `wait`; 0: as try_acquire; negative: invalid_wait. As mutex::try_lock_for().
  asio::awaitable<std::optional<lease>> try_acquire_for(milliseconds wait, unsigned n = 1, lock_options = {}) const;

  /// The number of free permits, by one read; a snapshot. A permit whose TTL is over counts as free. Throws as
  /// mutex::is_locked(), and corrupt_lock.
  asio::awaitable<unsigned> available() const;

  /// Sets the number of permits: 1 to 2^31-1. Permits that are out stay valid. While more are out than the new number,
  /// none is granted. A repeated command changes nothing. Wakes waiters. Throws as
  /// mutex::force_unlock(), except unconfirmed.
  /// Source: Redisson's "setPermits".
  asio::awaitable<void> set_permits(unsigned permits) const;

  /// Takes back all permits that are out, of every holder, and wakes waiters. Returns their number. Until the holders'
  /// next renewal, more than the number may be held. A lease that is not renewed learns of it at unlock(). Throws as
  /// mutex::force_unlock().
  asio::awaitable<unsigned> force_release() const;

  /// One permit, as a lock: for with_lock, multi_lock and code that takes a mutex. Its is_locked() returns true if no
  /// permit is free. Its holder() is the permit that ends next, as 32 hexadecimal digits. Its force_unlock() takes all
  /// permits back. any_of refuses it (invalid_config).
  mutex as_mutex() const;

  const std::string& name() const noexcept;

 private:
  friend detail::access;
  expirable_semaphore(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>);

  std::weak_ptr<detail::core> core_;
  std::shared_ptr<const detail::lock_keys> keys_;
};

}  // namespace holdfast
