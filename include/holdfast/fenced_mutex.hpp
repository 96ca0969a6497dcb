// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/mutex.hpp>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>

namespace holdfast {

/// A mutex whose leases have a fencing token: a number that is larger for each new hold of the name and the same for
/// its re-entries. The guarded resource remembers the largest one that it has seen and refuses what comes with a
/// smaller one: then a holder that was paused or cut off beyond its TTL can do no harm. Source: Redisson's RFencedLock;
/// Chubby's sequencer.
///
/// It is the plain lock (same keys, same exclusion, `mutex` and `fenced_mutex` of one name exclude each other) and a
/// counter at `redisson_lock_token:{name}`, without TTL unless config::token_ttl gives it one. A token is one more than
/// the last, or the server's clock in µs if that is more: so it grows on after a flush or a restart that lost the
/// counter, unless the server's clock was set back by more. Below 2^53. Where clients take turns (config::turns), a
/// grant has the last 1000 of these numbers up to the clock, if none of them was given: one for each hold that it is
/// passed on to.
///
/// Protect one resource by fenced mutexes alone: a hold of a plain mutex gets no token. Its re-entry by a fenced one
/// throws already_held.
/// The user needs the permissions GET, SET and TIME besides. All else as mutex; its functions throw what those of mutex
/// throw, and corrupt_lock if the counter is no number.
class HOLDFAST_EXPORT fenced_mutex : public mutex {
 public:
  /// The newest token, whoever got it; empty: there was no fenced hold yet, or none since the counter was lost. A
  /// snapshot. Where clients take turns, it is the last that the newest grant has: up to 999 more than the token of its
  /// hold. Do not begin a fence with it, which would refuse that hold.
  /// Throws unreachable, server_refused, corrupt_lock, protocol_error, overloaded, invalid_name, shutting_down and
  /// configuration errors. Cancelled: operation_aborted.
  asio::awaitable<std::optional<std::uint64_t>> last_token() const;

 private:
  friend detail::access;
  fenced_mutex(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>, std::optional<holdfast::owner>);
};

}  // namespace holdfast
