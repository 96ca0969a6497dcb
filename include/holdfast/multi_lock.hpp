// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/error.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lease_state.hpp>
#include <holdfast/lock_options.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/owner.hpp>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast {
namespace asio = boost::asio;
using std::chrono::milliseconds;

namespace detail {
struct lock_plan;
}  // namespace detail

/// The lease of a multi_lock: an ordinary hold of each of its locks, move-only. It is held while all are. The rules of
/// lease apply: what destruction does, which threads may call what, where an awaitable resumes.
class [[nodiscard]] HOLDFAST_EXPORT multi_lease {
 public:
  multi_lease() noexcept = default;

  /// Releases all at once, in one pipeline for each client. Each lock is released, even if another fails. Throws the
  /// most important error: lost, closed, a refusal, unconfirmed, not_held; see lease::unlock(). Cancelled:
  /// operation_aborted; the releases go on in the background.
  asio::awaitable<void> unlock();

  /// Raises the TTL of each now. Throws what lease::renew() throws; of several errors the most important, as unlock().
  asio::awaitable<void> renew(milliseconds ttl = milliseconds::zero());

  /// Calls lease::feed() of each.
  void feed() noexcept;

  [[nodiscard]] bool held() const noexcept;               ///< true if each is held
  [[nodiscard]] milliseconds valid_for() const noexcept;  ///< of the hold that ends first
  /// lost if one is; else released or suspended, if one is. empty: default-made or moved-from.
  [[nodiscard]] lease_state state() const noexcept;
  /// Deleted, as for lease.
  explicit operator bool() const noexcept = delete;

  /// Returns the reason as soon as one of the holds is lost. Throws not_held, and is cancelled, as lease::lost().
  asio::awaitable<error_code> lost() const;

  /// Number of locks: one that was given twice counts once.
  [[nodiscard]] std::size_t size() const noexcept { return leases_.size(); }
  /// The lease of the lock at this position of the list, where each counts once: its name(), token() and id().
  const lease& operator[](std::size_t index) const noexcept { return leases_[index]; }
  /// The owner of all of them. An empty multi_lease returns a new identity.
  holdfast::owner owner() const noexcept;

 private:
  friend detail::access;
  std::vector<lease> leases_;
};

/// Several locks as one, all or none. They may be of any kinds except red_lock, and of any clients, also of different
/// servers (then it is Redisson's RedissonMultiLock). Cheap to copy, holds nothing, may outlive its clients (then:
/// shutting_down).
///
///     std::vector<holdfast::mutex> accounts{redis.mutex("account:1"), redis.mutex("account:2")};
///     auto both = co_await holdfast::multi_lock(accounts).lock();
///
/// Calls of multi_lock never deadlock each other, in whatever order each was given its locks. All processes take locks
/// in one order, whatever their URLs:
/// - servers by their run ids; in a cluster the slots
/// - of one server or slot, each simple_mutex, then each mutex and fenced_mutex, each shared_mutex, each permit
/// - then the bytes of the key: key_prefix and name
///
/// Neighbours in this order form a group if they are of one client, one kind and, in a cluster, one slot. One script
/// takes a whole group or nothing, in one round trip. Names that share a {hash tag} share a slot. Groups are taken one
/// after the other; the earlier ones are kept meanwhile. A call for {a, b} keeps its turn for `a` while it waits for
/// `b`. So callers of this process for `a` alone and `b` alone cannot starve it. Callers of other processes may pass
/// it, as they may pass any waiter.
///
/// A permit of expirable_semaphore::as_mutex() is a group of its own, and is taken as by its lock(). Each call takes
/// another permit: an owner that holds all permits waits for itself. A side of a shared_mutex is a group of its own,
/// too. Its reader and its writer have one place in the order.
///
/// Locks that the same owner holds already are re-entered; a simple_mutex throws already_held. **The order holds for
/// nested locks as well.** An owner that holds `b` and asks for {a, b} waits for `a` while it holds `b`. So does an
/// owner that asks for `a` by its own lock(). If the holder of `a` waits for `b`, both wait indefinitely. The event
/// lock_order_broken reports such a wait of a multi_lock.
///
/// A server without a run id (INFO is refused) comes before all others, and so does a cluster. Several of these are
/// ordered as if they were one. If two of them, or two clients of one cluster, have a lock of the same name here,
/// lock() throws invalid_config. A server that restarts during the wait for groups changes its place. Then all locks
/// are given back and requested again. A slot keeps its place, wherever it moves.
/// Groups that are held while others are waited for are renewed like any lease. With a ttl that is not renewed, their
/// TTL is raised once more when the last group is granted. If one has ended by then, or Redis does not confirm that,
/// all locks are given back and requested again.
///
/// Owner, threads and the executor that resumes the caller: as for mutex. Cancelled: operation_aborted at once, and
/// nothing is left of any of the locks.
class HOLDFAST_EXPORT multi_lock {
 public:
  static constexpr std::size_t most = 1000;  ///< locks; one script looks at each, and Redis does not interrupt it

  /// A lock that is listed twice counts once. Throws invalid_name for an empty list and for more than `most` locks.
  /// Throws invalid_config for a red_lock, for locks of different owners, and for one lock as two kinds: as mutex and
  /// as fenced_mutex, or both sides of one shared_mutex. Names are checked at first use, as by a mutex. If a mutex was
  /// moved from, every call throws what that mutex throws.
  explicit multi_lock(const std::vector<mutex>& mutexes);

  /// Waits until all are granted, also through outages of Redis. Throws as mutex::lock().
  asio::awaitable<multi_lease> lock(lock_options = {}) const;
  /// Returns empty if one of them is held (of a permit: none is free), or waited for in this client. Takes no longer
  /// than mutex::try_lock() for each group. Throws as lock(), and unreachable, server_refused or overloaded.
  asio::awaitable<std::optional<multi_lease>> try_lock(lock_options = {}) const;
  /// Waits at most `wait` for all together; 0: as try_lock; negative: invalid_wait. Returns empty if not all were
  /// granted in time. Throws as lock(), and unreachable and server_refused as mutex::try_lock_for().
  asio::awaitable<std::optional<multi_lease>> try_lock_for(milliseconds wait, lock_options = {}) const;

 private:
  std::shared_ptr<const detail::lock_plan> plan_;
};

}  // namespace holdfast
