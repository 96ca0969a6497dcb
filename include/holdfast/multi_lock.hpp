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

/// What you hold under a multi_lock: an ordinary hold of each of its locks, move-only. It is held while all are. All
/// that is said of a lease is true of it: what destruction does, which threads may call what, where an awaitable
/// resumes.
class [[nodiscard]] HOLDFAST_EXPORT multi_lease {
 public:
  multi_lease() noexcept = default;

  /// Gives all back at once, in one pipeline for each client. Each is given back, whatever becomes of the others; what
  /// is thrown is the error that matters most: lost, closed, a refusal, unconfirmed, not_held; see lease::unlock().
  /// Cancelled: operation_aborted, the releases go on in the background.
  asio::awaitable<void> unlock();

  /// Raises the TTL of each now; throws as unlock(), what lease::renew() throws.
  asio::awaitable<void> renew(milliseconds ttl = milliseconds::zero());

  /// lease::feed() of each.
  void feed() noexcept;

  [[nodiscard]] bool held() const noexcept;               ///< each is
  [[nodiscard]] milliseconds valid_for() const noexcept;  ///< of the one that ends first
  /// lost if one is; else released, or suspended, if one is. empty: default-made or moved-from.
  [[nodiscard]] lease_state state() const noexcept;
  /// Deleted, as lease's.
  explicit operator bool() const noexcept = delete;

  /// Returns the reason as soon as one of the holds is lost. Throws not_held, and is cancelled, as lease::lost().
  asio::awaitable<error_code> lost() const;

  /// How many locks there are: one that was given twice counts once.
  [[nodiscard]] std::size_t size() const noexcept { return leases_.size(); }
  /// Of the lock that was given at this place, where each counts once: its name(), token() and id().
  const lease& operator[](std::size_t index) const noexcept { return leases_[index]; }
  /// Whose all of them are. A new identity for an empty one.
  holdfast::owner owner() const noexcept;

 private:
  friend detail::access;
  std::vector<lease> leases_;
};

/// Several locks as one, all or none: of any kinds, and of any clients, also of different servers (then it is
/// Redisson's RedissonMultiLock). Cheap to copy, holds nothing, may outlive its clients (then: shutting_down).
///
///     std::vector<holdfast::mutex> accounts{redis.mutex("account:1"), redis.mutex("account:2")};
///     auto both = co_await holdfast::multi_lock(accounts).lock();
///
/// No deadlock between calls of multi_lock, in whatever order each was given its locks: all processes take them in one
/// order, whatever their URLs. It is that of the servers' run ids, and in a cluster that of the slots; of one server or
/// slot, each simple_mutex comes before each mutex and fenced_mutex; of these, the bytes of the key decide, key_prefix
/// and name. Neighbours in this order of one client, one kind and, in a cluster, one slot are one group: one script
/// takes all of it or nothing, in one round trip. Names that share a {hash tag} share a slot. Groups are taken one
/// after the other; the earlier ones are kept meanwhile. A call for {a, b} keeps its turn for a while it waits for b,
/// so that callers of this process for a alone and b alone cannot starve it. Callers of other processes may pass it,
/// as they may pass any waiter.
///
/// What the same owner holds already is re-entered; a simple_mutex is already_held. **The order holds for nested locks
/// as well**: an owner that holds b and asks for {a, b}, or for a by a lock() of its own, waits for a while it holds b.
/// If the holder of a waits for b, both wait indefinitely. lock_order_broken reports such a wait of a multi_lock.
///
/// A server that does not tell its run id (INFO is refused) comes before all others, and so does a cluster. Several of
/// these are ordered as if they were one: give a name to two of them, or to two clients of one cluster, and lock()
/// throws invalid_config. A server that has restarted while groups were waited for has another place: then all is given
/// back, and asked for anew. A slot keeps its place, wherever it moves.
/// Groups that are held already while others are waited for are renewed like any lease. With a ttl that is not
/// renewed, their TTL is raised once more when the last group is had; where one has ended by then, or Redis does not
/// confirm that, all is given back, and asked for anew.
///
/// Whose lock() it is, threads, where the caller resumes: as for mutex. Cancelled: operation_aborted at once, and
/// nothing is left of any of them.
class HOLDFAST_EXPORT multi_lock {
 public:
  static constexpr std::size_t most = 1000;  ///< locks; each is looked at by one script, which Redis does not interrupt

  /// One that is there twice counts once. Throws invalid_name for none at all and for more than `most`; invalid_config
  /// for locks of different owners, and for one lock as mutex and as fenced_mutex. The names are checked when they are
  /// used, as a mutex does. With a mutex that was moved from, every call throws what that mutex throws.
  explicit multi_lock(const std::vector<mutex>& mutexes);

  /// Waits until it has all, and through outages of Redis. Throws as mutex::lock().
  asio::awaitable<multi_lease> lock(lock_options = {}) const;
  /// Empty: one of them is held, or waited for here. Takes no longer than mutex::try_lock() for each group. Throws as
  /// lock(), and unreachable, server_refused or overloaded.
  asio::awaitable<std::optional<multi_lease>> try_lock(lock_options = {}) const;
  /// Waits at most `wait` for all together (0: as try_lock; negative: invalid_wait). Empty: not all were had in time.
  /// Throws as lock(), and unreachable and server_refused as mutex::try_lock_for().
  asio::awaitable<std::optional<multi_lease>> try_lock_for(milliseconds wait, lock_options = {}) const;

 private:
  std::shared_ptr<const detail::lock_plan> plan_;
};

}  // namespace holdfast
