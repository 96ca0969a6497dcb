// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_options.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/owner.hpp>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace holdfast {
namespace asio = boost::asio;
using std::chrono::milliseconds;

/// Any one of several locks, whichever is free. Use it for work that is cut into buckets, each for one worker at a
/// time. The lease is an ordinary one, and lease::name() says which lock it is. Cheap to copy, holds nothing, may
/// outlive its client (then: shutting_down).
///
///     std::vector<holdfast::mutex> buckets;
///     for (int i = 0; i < 20; ++i) buckets.push_back(redis.mutex("bucket:" + std::to_string(i)));
///     auto lease = co_await holdfast::any_of(buckets).lock();  // g++ 12 refuses a braced list within co_await
///
/// Every function considers the locks that no caller of this client holds or waits for, and takes the first free one.
/// One script in one round trip does this; it starts at a random lock, so that callers spread. If none is free, lock()
/// and try_lock_for() wait for all at once, in the local line of each. They get the lock that is released first. A
/// second one that is granted in the same moment is given back at once. In a cluster each slot has a script of its own,
/// one after the other. Let the names share a {hash tag} if that matters.
///
/// An any_of never re-enters: an owner that holds one of the locks gets another, and waits if there is none. Within the
/// section a lock() of the lease's name re-enters as always, if the owner is bound or was given.
///
/// All locks must be of one client, of one kind, and of the same owner or of none.
///
/// A lock that fails does not stop the others. corrupt_lock and no_permission are thrown only when every lock has
/// failed; the error is that of the first. A waiting call does not look at a failed lock again. try_lock() needs
/// permission for each key that it looks at, because Redis checks this before it runs the script.
///
/// Owner, threads, the executor that resumes the caller, and what cancellation leaves behind: as for mutex. Waiting for
/// n locks costs n subscriptions and a command for each, and one more command for each at each look. Looks are
/// config::poll_cap apart, for simple locks 250 ms.
class HOLDFAST_EXPORT any_of {
 public:
  static constexpr std::size_t most = 1000;  ///< locks; one script looks at each, and Redis does not interrupt it

  /// A lock that is listed twice counts once. Throws invalid_name for an empty list and for more than `most` locks.
  /// Throws invalid_config for locks of different clients, kinds or owners, for a red_lock and for a permit. Names are
  /// checked at first use, as by a mutex. If a mutex was moved from, every call throws what that mutex throws.
  explicit any_of(const std::vector<mutex>& mutexes);

  /// Waits for the first lock that is free, also through outages of Redis. Throws as mutex::lock(), except lost and
  /// already_held.
  asio::awaitable<lease> lock(lock_options = {}) const;
  /// Returns empty if each lock is held, or waited for in this client. A key that is not a lock counts as held. Throws
  /// as lock(), and unreachable, server_refused or overloaded.
  asio::awaitable<std::optional<lease>> try_lock(lock_options = {}) const;
  /// Waits at most `wait`; 0: as try_lock; negative: invalid_wait. Returns empty if no lock was granted in time. Throws
  /// as lock(), and unreachable and server_refused as mutex::try_lock_for().
  asio::awaitable<std::optional<lease>> try_lock_for(milliseconds wait, lock_options = {}) const;

 private:
  friend detail::access;
  std::weak_ptr<detail::core> core_;
  std::shared_ptr<const std::vector<std::shared_ptr<const detail::lock_keys>>> locks_;
  std::optional<holdfast::owner> owner_;
};

}  // namespace holdfast
