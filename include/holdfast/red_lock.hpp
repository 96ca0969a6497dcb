// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/mutex.hpp>

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>

namespace holdfast {

class client;

/// Whether an owner that holds a red_lock may take it again.
enum class reentrancy {
  reentrant,      ///< as mutex: what each primary has is a mutex's hash
  not_reentrant,  ///< as simple_mutex (already_held): what each primary has is one string key, as other Redlock
                  ///< clients have it
};

/// A lock that a majority of several independent primaries has granted: Redlock. It lives on while a minority of them
/// is dead, hung or cut off, and is not slowed by them. Of a client with config::primaries.
///
/// All primaries are asked at once, each for the TTL that is left of it and for little time: the command timeout, or a
/// fiftieth of the TTL if that is less, 10 ms at least. The lock is had when a majority of those that are configured
/// has granted it, and enough of the TTL is left: the lease is valid as long as a majority's grants are, counted from
/// before the first was asked. Grants that make no majority are given back everywhere, also where nobody answers.
/// A lease is renewed at each primary by itself, and lost when a majority has not confirmed it in time, or has not got
/// it any more. unlock() is done when a majority has released it.
///
/// try_lock(): empty where a majority has answered and not granted it; else quorum_failed, whose text says of each
/// primary why. lock() waits on through that. Where callers divide the primaries among themselves, each gives back, and
/// tries again after a random pause. A waiter wakes when a majority has told of a release, or one round trip after the
/// first that has. Waiters of one client pass it on (config::turns); then it rests until the other clients that heard
/// of the release, by the word of the first primary that has freed it, may have had their turn.
///
/// A primary that comes back without what it knew could vote for a second holder. So it has no vote before the longest
/// TTL is over: the key `holdfast:redlock` of each primary names the run of the server that votes, and the longest TTL,
/// and each grant looks at it. A new installation has no such keys: initialise() makes them, or its primaries vote when
/// the longest TTL is over. See docs/guide/safety.md for what this promises and what not, for how to replace a primary,
/// and for what to use in place of a fencing token, which several primaries cannot count.
///
/// is_locked(), holder(), remaining_ttl() and hold_count() tell what a majority has. Everything else is as for mutex or
/// simple_mutex. The ACL user needs GET and SET besides, and the key `holdfast:redlock*`.
/// Source: "Distributed Locks with Redis" (redis.io); Redisson's RedissonRedLock.
class HOLDFAST_EXPORT red_lock : public mutex {
 public:
  /// Lets the primaries of a new installation vote at once. An operator's act, never a program's start: it says that no
  /// client has held a lock there within the longest TTL.
  /// Throws invalid_config where one has a marker already, where one server is there twice, or the client has no
  /// primaries; quorum_failed unless every one answers. Then nothing was done, unless one fails in between: the others
  /// have their markers then, and those without wait. Cancelled: operation_aborted, and it goes on.
  static asio::awaitable<void> initialise(const client&);

 private:
  friend detail::access;
  red_lock(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>, std::optional<holdfast::owner>);
};

}  // namespace holdfast
