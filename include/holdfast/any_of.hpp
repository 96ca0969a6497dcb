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

/// Any one of several locks, whichever is free: for work that is cut into buckets, each for one worker at a time. The
/// lease is that of an ordinary hold, and lease::name() says which lock it is. Cheap to copy, holds nothing, may
/// outlive its client (then: shutting_down).
///
///     std::vector<holdfast::mutex> buckets;
///     for (int i = 0; i < 20; ++i) buckets.push_back(redis.mutex("bucket:" + std::to_string(i)));
///     auto lease = co_await holdfast::any_of(buckets).lock();  // g++ 12 refuses a braced list within co_await
///
/// Every function takes the first free one of those that nobody of this client holds or waits for, by one script in one
/// round trip, from a random one on, so that callers spread. Where none is free, lock() and try_lock_for() wait for all
/// at once, in the local line of each, and have the one that is released first. A second one that is granted in the
/// same moment is given back at once. In a cluster each slot has a script of its own, one after the other: let the
/// names share a {hash tag} where that matters.
///
/// It never re-enters: a task whose owner holds one of them gets another, and waits if there is none. Within the
/// section a lock() of the lease's name re-enters as always, if the owner is bound or was given.
///
/// All must be of one client, of one kind, and of the same owner or of none.
///
/// A lock that cannot be had does not hinder the others: corrupt_lock and no_permission are thrown when each of them
/// has failed, and are those of the first; a call that waits does not look at such a lock again. try_lock() needs
/// permission for each of the keys that it looks at, because Redis does before it runs the script. Whose lock() it is,
/// threads, where the caller resumes, and what cancellation leaves behind: as for mutex. Waiting for n locks costs n
/// subscriptions, a command for each, and one more for each at each look: after config::poll_cap, of simple locks after
/// 250 ms.
class HOLDFAST_EXPORT any_of {
 public:
  static constexpr std::size_t most = 1000;  ///< locks; each is looked at by one script, which Redis does not interrupt

  /// One that is there twice counts once. Throws invalid_name for an empty list and for one of more than `most`;
  /// invalid_config for locks of different clients, kinds or owners, and for a red_lock. The names are checked when
  /// they are used, as a mutex does. With a mutex that was moved from, every call throws what that mutex throws.
  explicit any_of(const std::vector<mutex>& mutexes);

  /// Waits for whichever is free first, and through outages of Redis. Throws as mutex::lock(), except lost and
  /// already_held.
  asio::awaitable<lease> lock(lock_options = {}) const;
  /// Empty: each is held, or waited for here; a key that no lock is counts as one that is held. Throws as lock(), and
  /// unreachable, server_refused or overloaded.
  asio::awaitable<std::optional<lease>> try_lock(lock_options = {}) const;
  /// Waits at most `wait` (0: as try_lock; negative: invalid_wait). Empty: none was had in time. Throws as lock(), and
  /// unreachable and server_refused as mutex::try_lock_for().
  asio::awaitable<std::optional<lease>> try_lock_for(milliseconds wait, lock_options = {}) const;

 private:
  std::weak_ptr<detail::core> core_;
  std::shared_ptr<const std::vector<std::shared_ptr<const detail::lock_keys>>> locks_;
  std::optional<holdfast::owner> owner_;
};

}  // namespace holdfast
