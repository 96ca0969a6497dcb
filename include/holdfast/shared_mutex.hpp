// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_holder.hpp>
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

/// Many readers or one writer, fair among C++ clients: Redisson's RReadWriteLock. Use it where reads last longer than a
/// round trip, because an uncontended lock_shared() costs the server twice as much as mutex::lock(). Cheap to copy,
/// holds nothing, may outlive its client.
///
/// The names are those of std::shared_timed_mutex. lock() writes, and lock_shared() reads. Each returns a lease, like
/// that of a mutex: renewed while it lives, lost by the same clock, back by its TTL when its process dies.
///
/// Nested calls: an owner that writes may write and read again, with leases of the same hold. An owner that reads may
/// read again, also while a writer waits. An owner that reads and asks to write gets already_held at once: two readers
/// that upgrade would wait for each other. Nested calls need an owner. Without one they may wait for their own task, as
/// long as that holds the lock.
///
/// Readers of one client share a hold where a grant is at most 5 ms old and met no waiting writer. Readers that waited
/// right behind the granted one share its hold in any case. Neither sends a command. Their leases have one id() and are
/// lost together, and only the last unlock() sends a release. A lease has a hold of its own if it is not renewed, has
/// max_hold or wants more replicas. The lease of a nested call belongs to its owner's hold.
///
/// Fairness: the calls of one client wait first in, first out. Clients that wait to write stand in a queue in Redis.
/// While one of them waits, Redis lets no newcomer read. Readers that share a hold do not ask Redis. So they may still
/// begin, until 5 ms after the grant. After each write all clients that wait to read come first, and then the next
/// writer. Writers of one client pass the lock on for at most 20 ms (config::turns). Clients of Redisson ignore that:
/// beside them the lock excludes, has no order, and a writer may starve.
///
/// Every function may be called from any thread, copies its arguments, and returns a lazy awaitable. It resumes on the
/// awaiting coroutine's executor, and is cancelled, as a function of mutex. Cancellation leaves no place in a queue.
/// Throws as a function of mutex.
///
/// The ACL user needs the permissions of a mutex and more. Keys and channels, for the key_prefix `p`:
/// `~{p* ~holdfast_turn:{p* ~holdfast_queue:{p* ~holdfast_readers:{p*`,
/// `&redisson_rwlock:{p* &holdfast_wake:{p* &holdfast_waiters:{p*`. The commands GET, SET, TIME, HMGET, ZADD, ZREM,
/// ZRANGE, ZRANK, ZCARD, ZPOPMIN, ZSCORE and PUBSUB NUMSUB, or in a cluster of Redis 7 PUBSUB SHARDNUMSUB. connect()
/// does not check these: the first lock() throws no_permission.
class HOLDFAST_EXPORT shared_mutex {
 public:
  /// Waits until nobody else reads or writes. As mutex::lock(); already_held if its owner reads.
  /// Source: Redisson's "RReadWriteLock.writeLock().lock".
  asio::awaitable<lease> lock(lock_options = {}) const;

  /// Returns empty if another owner reads or writes, or anybody waits. As mutex::try_lock(), and already_held as
  /// lock().
  asio::awaitable<std::optional<lease>> try_lock(lock_options = {}) const;

  /// Waits at most `wait`; 0: as try_lock; negative: invalid_wait. As mutex::try_lock_for(), and already_held as
  /// lock().
  asio::awaitable<std::optional<lease>> try_lock_for(milliseconds wait, lock_options = {}) const;

  /// Waits until nobody else writes. A newcomer also lets a waiting writer go first. As mutex::lock(); never
  /// already_held.
  /// Source: Redisson's "RReadWriteLock.readLock().lock".
  asio::awaitable<lease> lock_shared(lock_options = {}) const;

  /// Returns empty if another owner writes, if a writer waits, or if another call of this client waits for the lock. A
  /// call that shares a hold does not see a writer of another client that came after the grant. As mutex::try_lock();
  /// never already_held.
  asio::awaitable<std::optional<lease>> try_lock_shared(lock_options = {}) const;

  /// Waits at most `wait`; 0: as try_lock_shared; negative: invalid_wait. As mutex::try_lock_for(); never already_held.
  asio::awaitable<std::optional<lease>> try_lock_shared_for(milliseconds wait, lock_options = {}) const;

  /// Turns the write lease `write` into a read lease. No other owner can write in between. Waiting readers are woken.
  /// From the call on, do not write. Do not move or destroy the lease until the caller resumes: then it is replaced.
  /// Do not unlock it either: an unlock() during the command ends as a loss, and both sides are released.
  /// The read lease has a new id(), and the terms of `write`, begun anew. lost() of the write lease throws not_held. A
  /// with_lock() around the call does not see the read lease's loss: watch lost() of `write` instead.
  /// Throws:
  /// - already_held: the write hold has other leases, of nested calls
  /// - not_held: empty, unlocked, or no write lease of this lock and this client
  /// - lost, closed and corrupt_lock; unconfirmed: no answer within the command timeout; not_replicated. `write` is
  ///   lost, and what it had is released in the background
  /// - unreachable, server_refused, overloaded, or another refusal of the server: nothing was done, and `write` is as
  ///   it was
  ///
  /// Cancelled: operation_aborted. `write` is as it was if nothing was sent yet, else lost as after unconfirmed.
  /// Source: in Redisson a writer locks the readLock(), and unlocks the writeLock().
  asio::awaitable<void> downgrade(lease& write) const;

  /// Breaks the hold of the writer, or those of all readers, and wakes waiters. Returns true if there was one. As
  /// mutex::force_unlock().
  asio::awaitable<bool> force_unlock() const;

  /// The holder that writes, by one read; empty: nobody writes. As mutex::holder().
  asio::awaitable<std::optional<lock_holder>> holder() const;

  /// The number of read holds, by one read; a snapshot. Readers of one client may share a hold, so readers may be
  /// more. Throws as mutex::is_locked(), and corrupt_lock.
  asio::awaitable<unsigned> read_holds() const;

  /// One side as a mutex: for with_lock and for code that takes a mutex. is_locked(), held_by() and holder() are about
  /// that side; reader().holder() is any one reader. remaining_ttl() and force_unlock() are about both.
  mutex writer() const;
  mutex reader() const;

  const std::string& name() const noexcept;

 private:
  friend detail::access;
  shared_mutex(mutex writer, mutex reader);

  mutex writer_, reader_;
};

}  // namespace holdfast
