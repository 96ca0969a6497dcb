// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/mutex.hpp>

#include <memory>
#include <optional>

namespace holdfast {

/// The lock of one string key, `SET name token NX PX ttl`, that clients of most languages speak: redis-py's Lock with a
/// timeout, redlock on one server, a shell script. Take it to share locks with those; among holdfast and Redisson
/// clients take mutex, which nests.
///
/// The key *is* the name (behind key_prefix); its value is lease::id() of the holder; release and renewal compare the
/// value before they touch the key. Whoever's value is there holds it, so all that write the name must follow the
/// pattern: a value of their own, a TTL, compare before delete. A mutex and a simple_mutex of the same name are never
/// both held, but neither waits for the other: each throws corrupt_lock where it finds the other's key, and leaves it
/// alone.
///
/// Not re-entrant: lock(), try_lock() and try_lock_for() throw already_held where the owner that was given or bound
/// holds it already, or comes to hold it while this call waits; so a nested lock() in the body of with_lock() does,
/// too. Without an owner every lock() is its own identity, and a nested lock() waits for itself, which the observer
/// hears.
///
/// Waiting: a release by holdfast wakes the first waiter of each client at once, over the channel
/// `holdfast_simple:{name}`. Others release without a message, so a waiting client also looks by itself: after 20 ms,
/// then after pauses that double up to 250 ms (config::poll_cap, if that is less), and when the holder's TTL is over. A
/// key without TTL throws corrupt_lock: it would never end. Waiters of one client pass it on (config::turns); for those
/// who look now and then it is left free for 20 ms about four times a second, and after each turn once one was met.
///
/// hold_count() is 0 or 1. force_unlock() deletes the key, whoever wrote it. A string of more than 256 bytes, or one
/// without a TTL, may be somebody's data: it throws corrupt_lock. lease::token() is empty. Everything else (lease,
/// renewal, loss, cancellation) is as for mutex.
///
/// The ACL user needs SET, GETRANGE and DEL besides what a mutex needs, and the channels `holdfast_simple:*` of its
/// names; connect() does not try them. It tries a plain lock, and throws no_permission to a user that may have simple
/// ones alone: such a client connects at first use.
/// Source: Redis' "SET" pattern for locks.
class HOLDFAST_EXPORT simple_mutex : public mutex {
 private:
  friend detail::access;
  simple_mutex(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>, std::optional<holdfast::owner>);
};

}  // namespace holdfast
