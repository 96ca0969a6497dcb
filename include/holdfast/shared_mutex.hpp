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

/// Many readers or one writer, and neither starves: Redisson's RReadWriteLock. Use it where reads last longer than a
/// round trip, because an uncontended lock_shared() costs the server twice as much as mutex::lock(). Cheap to copy,
/// holds nothing, may outlive its client.
///
/// The names are those of std::shared_timed_mutex. lock() writes, and lock_shared() reads. Each returns a lease, like
/// that of a mutex: renewed while it lives, lost by the same clock, back by its TTL when its process dies.
///
/// Nested calls: an owner that writes may write and read again, with leases of the same hold. An owner that reads may
/// read again, also while a writer waits. An owner that reads and asks to write gets already_held at once: two readers
/// that upgrade would wait for each other. A nested read needs an owner. Without one it may wait behind a writer that
/// waits for the first read.
///
/// Readers of one client share a hold where a grant is at most 5 ms old and met no waiting writer. Readers that waited
/// right behind the granted one share its hold in any case. Neither sends a command. Their leases have one id() and are
/// lost together, and only the last unlock() sends a release. A lease with a TTL that is not renewed, or with max_hold,
/// or with more min_replicas, is of a hold of its own. The lease of a nested call is of its owner's hold.
///
/// Fairness: the calls of one client wait first in, first out. Clients that wait to write stand in a queue in Redis.
/// While one of them waits, Redis lets no newcomer read. Readers that share a hold do not ask Redis. So they may still
/// begin, until 5 ms after the grant. After each write all clients that wait to read come first, and then the next
/// writer. Writers of one client pass the lock on for at most 20 ms (config::turns). Clients of Redisson ignore that:
/// beside them the lock excludes, and has no order.
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

  /// Returns empty if anybody reads, writes or waits for the lock. As mutex::try_lock(), and already_held as lock().
  asio::awaitable<std::optional<lease>> try_lock(lock_options = {}) const;

  /// Waits at most `wait`; 0: as try_lock; negative: invalid_wait. As mutex::try_lock_for(), and already_held as
  /// lock().
  asio::awaitable<std::optional<lease>> try_lock_for(milliseconds wait, lock_options = {}) const;

  /// Waits until nobody else writes, and until a writer that waits already has had the lock. As mutex::lock(); never
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
  /// From the call on, do not write under it, and leave the object where it is until the caller resumes: then it is
  /// replaced. The terms of the read lease are those of `write`, and begin anew. lost() of the write lease throws
  /// not_held. An upgrade does not exist.
  /// Throws:
  /// - already_held: its owner has other leases of the write hold
  /// - not_held: empty, unlocked, or no write lease of this lock and this client
  /// - lost and closed; unconfirmed: no answer within the command timeout; not_replicated. `write` is lost, and what it
  ///   had is released in the background
  /// - unreachable, server_refused, overloaded, or a refusal of the server: nothing was done, and `write` is as it was
  ///
  /// Cancelled: operation_aborted. `write` is as it was if nothing was sent yet, else lost as after unconfirmed.
  /// Source: in Redisson a writer locks the readLock(), and unlocks the writeLock().
  asio::awaitable<void> downgrade(lease& write) const;

  /// Breaks the hold of the writer, or those of all readers, and wakes waiters. Returns true if there was one. As
  /// mutex::force_unlock().
  asio::awaitable<bool> force_unlock() const;

  /// The holder that writes, by one read; empty: nobody writes. As mutex::holder().
  asio::awaitable<std::optional<lock_holder>> holder() const;

  /// The number of read holds, by one read; a snapshot. Readers of one client may share a hold, so it is no number of
  /// readers. Throws as mutex::is_locked(), and corrupt_lock.
  asio::awaitable<unsigned> read_holds() const;

  /// One side as a mutex: for with_lock and for code that takes a mutex. is_locked(), held_by() and holder() are about
  /// that side; holder() of the reader is one of those that read. remaining_ttl() and force_unlock() are about both.
  mutex writer() const;
  mutex reader() const;

  const std::string& name() const noexcept;

 private:
  friend detail::access;
  shared_mutex(mutex writer, mutex reader);

  mutex writer_, reader_;
};

}  // namespace holdfast
