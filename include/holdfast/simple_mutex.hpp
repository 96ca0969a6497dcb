// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/mutex.hpp>

#include <memory>
#include <optional>

namespace holdfast {

/// A lock of one string key, `SET name token NX PX ttl`, which clients of most languages speak. Examples: redis-py's
/// Lock with a timeout, redlock on one server, a shell script. Use it to share locks with those. Among holdfast and
/// Redisson clients use mutex, which nests.
///
/// The key *is* the name (behind key_prefix); its value is lease::id() of the holder. Release and renewal compare the
/// value before they touch the key. The program whose value is in the key holds the lock. So all that write the name
/// must follow the pattern: a value of their own, a TTL, compare before delete. A mutex and a simple_mutex of the same
/// name are never both held, but neither waits for the other. Each throws corrupt_lock if it finds the other's key, and
/// does not change it.
///
/// Not re-entrant: lock(), try_lock() and try_lock_for() throw already_held if the given or bound owner holds the lock.
/// They also throw it if the owner gets the lock while the call waits. So does a nested lock() in the body of
/// with_lock(). Without an owner every lock() is its own identity. A nested lock() then waits for itself, and the
/// observer is notified.
///
/// Waiting: a release by holdfast wakes the first waiter of each client at once, over the channel
/// `holdfast_simple:{name}`. Other programs release without a message, so a waiting client also polls. It looks after
/// 20 ms, then after pauses that double up to 250 ms (config::poll_cap, if that is less). It also looks when the
/// holder's TTL is over. A key without TTL throws corrupt_lock: it would never end. Waiters of one client pass the lock
/// on (config::turns). For programs that poll, the client leaves it free for 20 ms about four times a second. After it
/// has met one, it does so after each turn for a second.
///
/// hold_count() is 0 or 1. force_unlock() deletes the key, whoever wrote it. A string of more than 256 bytes, or one
/// without a TTL, may be another program's data: it throws corrupt_lock. lease::token() is empty. Everything else
/// (lease, renewal, loss, cancellation) is as for mutex.
///
/// The ACL user needs the permissions of a mutex, SET, GETRANGE and DEL, and the channels `holdfast_simple:*` of its
/// names. connect() does not check these. It checks those of a plain lock, and throws no_permission to a user that may
/// use only simple ones. Such a client skips connect() and connects at first use.
/// Source: Redis' "SET" pattern for locks.
class HOLDFAST_EXPORT simple_mutex : public mutex {
 private:
  friend detail::access;
  simple_mutex(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>, std::optional<holdfast::owner>);
};

}  // namespace holdfast
