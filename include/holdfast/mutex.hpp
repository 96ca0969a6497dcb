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
/// Keep what lock() gives: `auto lease = co_await m.lock();`. A `co_await m.lock();` without a variable locks nothing:
/// the lease is the hold, and ends at the semicolon; in `if (co_await m.try_lock())` it ends with the condition. Write
/// `if (auto lease = co_await m.try_lock())`.
///
/// Whose lock() it is: the owner given to client::mutex, else the one bound to the awaiting coroutine's executor
/// (owner::bind), else every lock() is its own identity, as with std::mutex.
///
/// Every function may be called from any thread, copies what it needs, and returns a lazy awaitable: the mutex may die
/// before it runs.
/// It resumes on the awaiting coroutine's executor, never inside the call, with owner and cancellation state as before.
/// That executor's context may end before: it destroys the coroutine, as Asio does with all that wait, and what it
/// waited for is given back.
/// Cancellation (what the coroutine's own filter lets through; terminal by default) answers operation_aborted at once
/// and leaves no key, count, subscription, waiter or renewal behind: on a live link immediately, on a severed one
/// within command timeout + reconnect, at worst one TTL. Every function throws shutting_down after shutdown, those that
/// lock also while the client drains (client::drain says for whom); closed where the mutex was moved from; and
/// invalid_name for a name that is empty or over 64 KiB.
class HOLDFAST_EXPORT mutex {
 public:
  /// Waits its turn: first in, first out among the waiters of this client. Waits through outages of Redis (told to the
  /// observer). A re-entry waits for nothing where its hold covers it: nothing is suspended or in doubt, an explicit
  /// TTL is not longer than the validity, a renewed one is not longer than that of the hold, which is renewed and has
  /// two thirds of it left, and no more replicas are wanted. Redis is told in the background: a lock that was broken by
  /// force is lost a round trip later. Else it asks Redis, until its hold is lost at most, and throws lost in that
  /// instant.
  /// Throws lost (re-entry into a lost hold), already_held (see fenced_mutex and simple_mutex), corrupt_lock,
  /// invalid_ttl, too_many_reentries, auth_failed, no_permission, not_primary, tls_failed, invalid_config (a database
  /// that the server does not have), protocol_error, shutting_down.
  asio::awaitable<lease> lock(lock_options = {}) const;

  /// Empty: someone else holds it, or waits for it here. Takes no longer than a command: the command timeout, or a
  /// fifth of the TTL where that is less. That includes a new connection and the text of a script. In that time it
  /// waits for earlier calls of its owner. For the release of an attempt that was given up it waits at most half of the
  /// time. Throws as lock(), and unreachable, server_refused or overloaded.
  asio::awaitable<std::optional<lease>> try_lock(lock_options = {}) const;

  /// Waits at most `wait` (0: as try_lock; negative: invalid_wait). Empty: Redis has said meanwhile that the lock was
  /// taken, or this client holds it, or Redis has answered other commands since the attempt was sent. A grant that
  /// comes later is given back. Throws as lock(), and server_refused. Throws unreachable if Redis has said nothing at
  /// all since the attempt was sent, or if there is no connection.
  asio::awaitable<std::optional<lease>> try_lock_for(milliseconds wait, lock_options = {}) const;

  /// Breaks any hold of the name, whoever has it, and wakes waiters. True: there was one. Its holder finds out at its
  /// next renewal or last unlock, or a round trip after a re-entry. Throws unconfirmed when the first answer was lost
  /// and a second command found no hold; unreachable, server_refused, corrupt_lock, protocol_error, overloaded and
  /// configuration errors.
  asio::awaitable<bool> force_unlock() const;

  // The queries throw as force_unlock(); of them only those that count, and holder(), throw corrupt_lock.
  asio::awaitable<bool> is_locked() const;  ///< by anyone, anywhere; a snapshot
  /// How often this client's owner holds it: 0 when Redis says that it does not.
  asio::awaitable<unsigned> hold_count(holdfast::owner) const;
  asio::awaitable<bool> held_by(holdfast::owner) const;  ///< hold_count() > 0
  /// Who holds it, by one read; empty: free. For people, logs and alarms: it may be over before the answer is here.
  /// corrupt_lock also for a hash of several fields, as that of Redisson's RReadWriteLock.
  asio::awaitable<std::optional<lock_holder>> holder() const;
  /// How long Redis will keep the lock without renewal; empty: free; milliseconds::max(): a lock without TTL.
  asio::awaitable<std::optional<milliseconds>> remaining_ttl() const;

  const std::string& name() const noexcept;

 private:
  friend detail::access;
  friend fenced_mutex;
  friend red_lock;
  friend simple_mutex;
  mutex(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>, std::optional<holdfast::owner>);

  std::weak_ptr<detail::core> core_;
  std::shared_ptr<const detail::lock_keys> keys_;
  std::optional<holdfast::owner> owner_;
};

}  // namespace holdfast
