// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/mutex.hpp>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>

namespace holdfast {

/// A mutex whose leases have a fencing token: a number that is larger for each new hold of the name. Re-entries have
/// the same number. The guarded resource remembers the largest token that it has seen and refuses a smaller one. Then a
/// holder that was paused or cut off beyond its TTL can do no harm. Source: Redisson's RFencedLock; Chubby's sequencer.
///
/// A fenced_mutex is the plain lock and a counter. Both have the same keys, so `mutex` and `fenced_mutex` of one name
/// exclude each other. The counter is at `redisson_lock_token:{name}`, without TTL unless config::token_ttl sets one. A
/// token is one more than the last, or the server's clock in µs if that is more. So it still grows after a flush or a
/// restart that lost the counter, unless the server's clock was set back by more. Tokens stay below 2^53. If clients
/// take turns (config::turns), a grant gets the last 1000 of these numbers up to the clock, if none of them was given.
/// Each hold that the grant is passed on to gets one.
///
/// Protect one resource by fenced mutexes alone: a hold of a plain mutex gets no token. Its re-entry by a fenced mutex
/// throws already_held.
/// The ACL user also needs the permissions GET, SET and TIME. Everything else is as for mutex. Functions throw what
/// those of mutex throw, and corrupt_lock if the counter is not a number.
class HOLDFAST_EXPORT fenced_mutex : public mutex {
 public:
  /// The newest token of any holder; a snapshot. Empty: there was no fenced hold yet, or none since the counter was
  /// lost. If clients take turns, this is the last number that the newest grant got: up to 999 more than the token of
  /// its hold. Do not start a fence with it: the fence would refuse that hold.
  /// Throws unreachable, server_refused, corrupt_lock, protocol_error, overloaded, invalid_name, shutting_down and
  /// configuration errors. Cancelled: operation_aborted.
  asio::awaitable<std::optional<std::uint64_t>> last_token() const;

 private:
  friend detail::access;
  fenced_mutex(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>, std::optional<holdfast::owner>);
};

}  // namespace holdfast
