// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_holder.hpp>
#include <holdfast/lock_options.hpp>
#include <holdfast/owner.hpp>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace holdfast {
namespace asio = boost::asio;
using std::chrono::milliseconds;

class expirable_semaphore;
class fair_mutex;
class fenced_mutex;
class red_lock;
class simple_mutex;

namespace detail {
class core;
struct lock_keys;
}  // namespace detail

/// A reentrant, self-renewing lock on one name: Redisson's RLock. Cheap to copy, holds nothing, may outlive its client
/// (then: shutting_down).
///
/// Keep the lease: `auto lease = co_await m.lock();`. A `co_await m.lock();` without a variable locks nothing, because
/// the lease is the hold and ends at the semicolon. In `if (co_await m.try_lock())` the lease ends with the condition.
/// Write `if (auto lease = co_await m.try_lock())`.
///
/// The owner of a lock() is the one given to client::mutex. Without one, it is the owner bound to the awaiting
/// coroutine's executor (owner::bind). Without either, every lock() has its own identity, as with std::mutex.
///
/// Every function may be called from any thread, copies what it needs, and returns a lazy awaitable. The mutex may be
/// destroyed before the awaitable runs. It resumes on the awaiting coroutine's executor, never inside the call, with
/// owner and cancellation state as before. If that executor's context ends earlier, it destroys the coroutine, as Asio
/// does with all waiting ones. A lock granted to it is given back.
/// Cancelled: operation_aborted at once. The coroutine's own filter decides which cancellation passes; by default
/// terminal. Cancellation leaves no key, count, subscription, waiter or renewal behind. On a live link they are gone
/// immediately, on a broken one within command timeout + reconnect, at worst after one TTL.
/// Every function throws shutting_down after shutdown. Those that lock also throw it while the client drains;
/// client::drain says for which callers. They throw closed if the mutex was moved from, and invalid_name if the name is
/// empty or over 64 KiB.
class HOLDFAST_EXPORT mutex {
 public:
  /// Waits its turn: first in, first out among the waiters of this client. Waits through outages of Redis and reports
  /// them to the observer. A re-entry does not wait if the hold covers it, that is if all of these are true:
  /// - the hold is held: neither suspended nor in doubt
  /// - an explicit TTL is not longer than the hold's validity
  /// - a renewed TTL is not longer than that of the hold, which is renewed and has two thirds of it left
  /// - it wants no more replicas
  ///
  /// Redis learns of such a re-entry in the background. If the lock was broken by force, the lease is lost a round trip
  /// later. Any other re-entry asks Redis. If the hold is lost meanwhile, it throws lost in that instant.
  /// Throws lost (re-entry into a lost hold), already_held (see fenced_mutex and simple_mutex), corrupt_lock,
  /// invalid_ttl, too_many_reentries, auth_failed, no_permission, not_primary, tls_failed, protocol_error,
  /// shutting_down. Throws invalid_config for a database that the server does not have.
  asio::awaitable<lease> lock(lock_options = {}) const;

  /// Returns empty if another owner holds the lock, or waits for it in this client. Takes no longer than one command:
  /// the command timeout or a fifth of the TTL, whichever is less. That time includes a new connection and the text of
  /// a script. Within it the call waits for earlier calls of its owner. It waits at most half of it for the release of
  /// an attempt that was given up. Throws as lock(), and unreachable, server_refused or overloaded.
  asio::awaitable<std::optional<lease>> try_lock(lock_options = {}) const;

  /// Waits at most `wait`; 0: as try_lock; negative: invalid_wait. Returns empty if Redis reported the lock as taken
  /// meanwhile, or if this client holds it. Also returns empty if Redis has answered other commands since the attempt
  /// was sent. A grant that comes later is given back. Throws as lock(), and server_refused. Throws unreachable if
  /// Redis has answered nothing since the attempt was sent, or if there is no connection.
  asio::awaitable<std::optional<lease>> try_lock_for(milliseconds wait, lock_options = {}) const;

  /// Breaks the hold of any owner on the name, and wakes waiters. Returns true if there was a hold. Its holder learns
  /// of it at its next renewal or last unlock, or a round trip after a re-entry. Throws unconfirmed when the first
  /// answer was lost and a second command found no hold. Also throws unreachable, server_refused, corrupt_lock,
  /// protocol_error, overloaded and configuration errors.
  asio::awaitable<bool> force_unlock() const;

  // Queries. They throw as force_unlock(); only those that count, and holder(), throw corrupt_lock.
  asio::awaitable<bool> is_locked() const;  ///< held by anyone, anywhere; a snapshot
  /// Number of holds of this client's owner; 0 if Redis has none.
  asio::awaitable<unsigned> hold_count(holdfast::owner) const;
  asio::awaitable<bool> held_by(holdfast::owner) const;  ///< hold_count() > 0
  /// The holder, by one read; empty: free. For people, logs and alarms: it may have changed before the answer arrives.
  /// With config::notes a second read goes with the first, for the note. If it fails, since and note stay empty.
  /// Throws corrupt_lock also for a hash of several fields, such as that of Redisson's RReadWriteLock.
  asio::awaitable<std::optional<lock_holder>> holder() const;
  /// How long Redis keeps the lock without renewal; empty: free; milliseconds::max(): a lock without TTL.
  asio::awaitable<std::optional<milliseconds>> remaining_ttl() const;

  const std::string& name() const noexcept;

 private:
  friend detail::access;
  friend fair_mutex;
  friend fenced_mutex;
  friend red_lock;
  friend simple_mutex;
  mutex(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>, std::optional<holdfast::owner>);

  std::weak_ptr<detail::core> core_;
  std::shared_ptr<const detail::lock_keys> keys_;
  std::optional<holdfast::owner> owner_;
};

}  // namespace holdfast
