// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/mutex.hpp>

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>

namespace holdfast {

class client;

/// Whether an owner that holds a red_lock may lock it again.
enum class reentrancy {
  reentrant,      ///< as mutex: each primary has a mutex's hash
  not_reentrant,  ///< as simple_mutex (already_held): each primary has one string key, as for other Redlock clients
};

/// A lock that a majority of several independent primaries grants: Redlock. It works while a minority of them is dead,
/// hung or cut off, and is not slowed by them. Needs a client with config::red_lock.primaries.
///
/// All primaries are asked at once, each for the TTL that is left. The timeout of a vote is the command timeout or a
/// fiftieth of the TTL, whichever is less, and at least 10 ms. The lock is granted when a majority of the configured
/// primaries has granted it and enough of the TTL is left. The lease is valid while a majority's grants are, counted
/// from before the first request. Grants without a majority are given back everywhere, also at primaries that do not
/// answer. A lease is renewed at each primary independently. It is lost when a majority has not confirmed it in time,
/// or no longer has it. unlock() is done when a majority has released it.
///
/// try_lock() returns empty if a majority has answered but the lock is not granted. Else it throws quorum_failed, whose
/// text gives the reason for each primary. lock() waits on through that. If callers split the votes, each gives its
/// grants back and tries again after a random pause. A waiter wakes when a majority has notified it of a release, or
/// one round trip after the first notification. Waiters of one client pass the lock on (config::turns). Then the client
/// waits until the other clients that received the release may have had their turn. The first primary that has freed
/// the lock counts these clients.
///
/// A primary that restarts without its data could vote for a second holder. So it has no vote before the longest TTL is
/// over. The key `holdfast:redlock` of each primary names the run of the server that votes, and the longest TTL. Each
/// grant checks it. A new installation has no such keys. initialise() makes them; without it the primaries vote when
/// the longest TTL is over. See docs/guide/safety.md for the promises and their limits, and for what replaces fencing
/// tokens. See docs/guide/red_lock.md for how to replace a primary. Several primaries cannot count tokens.
///
/// is_locked(), holder(), remaining_ttl() and hold_count() return what a majority has. Everything else is as for mutex
/// or simple_mutex. The ACL user also needs GET and SET, and the key `holdfast:redlock*`.
/// Source: "Distributed Locks with Redis" (redis.io); Redisson's RedissonRedLock.
class HOLDFAST_EXPORT red_lock : public mutex {
 public:
  /// Lets the primaries of a new installation vote at once. Only an operator calls it, never a program at its start. It
  /// asserts that no client has held a lock there within the longest TTL.
  /// Throws invalid_config if a primary has a marker already, if one server is listed twice, or if the client has no
  /// primaries. Throws quorum_failed unless every primary answers. In both cases nothing was done, unless a primary
  /// fails in between. Then the others have their markers, and those without one wait. Cancelled: operation_aborted,
  /// and it goes on.
  static asio::awaitable<void> initialise(const client&);

 private:
  friend detail::access;
  red_lock(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>, std::optional<holdfast::owner>);
};

}  // namespace holdfast
