// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_options.hpp>
#include <holdfast/mutex.hpp>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast {
namespace asio = boost::asio;
using std::chrono::milliseconds;

/// The leader of an election, as Redis knew it.
struct leader_info {
  std::uint64_t term = 0;  ///< its fencing token: each new leader has a larger one
  std::string value;       ///< that it has campaigned with, or proclaimed since
  std::string id;          ///< as lease::id()
  milliseconds ttl{};      ///< how long Redis keeps it without renewal; milliseconds::max(): a lock without TTL
};

/// One leader at a time, over all processes, and everybody can read its term and its value. Cheap to copy, holds
/// nothing, may outlive its client (then: shutting_down).
///
/// A candidate leads while its lease is held. To resign, unlock the lease. lease::token() is the term, a fencing token:
/// the resource remembers the largest term and refuses a smaller one, as with fenced_mutex. So a leader that was paused
/// beyond its TTL can write nothing. Each leader is elected by Redis: a lease is never passed on inside a client.
///
/// A value is any bytes, at most 64 KiB, else invalid_argument, and nothing is sent: usually an address. Redis has it
/// in the lock itself, so a value is read only together with the leader that it belongs to.
///
/// The lock is that of a fenced_mutex, with two more fields: `leader` and `term`. So an election and Redisson's
/// RFencedLock of one name exclude each other. Such a holder has no value. The force_unlock() of a mutex refuses the
/// lock of a leader: corrupt_lock. Give each kind of lock its own names.
///
/// Nested calls: campaign() throws already_held if the given or bound owner leads already.
///
/// Every function may be called from any thread, copies its arguments, and returns a lazy awaitable. It resumes on the
/// awaiting coroutine's executor, never inside the call. Cancelled: operation_aborted at once. A campaign that is
/// cancelled leaves no key, as mutex::lock(). An observer leaves no subscription.
/// Every function but proclaim() throws shutting_down after shutdown, closed if the election was moved from, and
/// invalid_name if the name is empty or over 64 KiB. It throws corrupt_lock if the key is no such lock, or the counter
/// of the terms no number; auth_failed, no_permission, not_primary, tls_failed, protocol_error. A client with several
/// primaries (red_lock) has no election: invalid_config.
///
/// The ACL user needs the permissions of a mutex and more. Keys and channel, for the key_prefix `p`:
/// `~redisson_lock_token:{p* &holdfast_election:{p*`. The commands GET, SET, TIME and HGETALL. connect() does not check
/// these.
/// Source: the verbs are those of etcd's "concurrency.Election". Redisson has no election.
class HOLDFAST_EXPORT election {
 public:
  /// Waits until it leads. As mutex::lock(), and invalid_argument for the value.
  asio::awaitable<lease> campaign(std::string value, lock_options = {}) const;

  /// Returns empty if another candidate leads, or waits in this client. As mutex::try_lock(), and invalid_argument.
  asio::awaitable<std::optional<lease>> try_campaign(std::string value, lock_options = {}) const;

  /// Waits at most `wait`; 0: as try_campaign; negative: invalid_wait. As mutex::try_lock_for(), and invalid_argument.
  asio::awaitable<std::optional<lease>> try_campaign_for(milliseconds wait, std::string value, lock_options = {}) const;

  /// Changes the value of the leader that holds this lease. Calls about one lease are done one after the other, in
  /// their order, and a last unlock() waits for them. Takes at most a command timeout.
  /// Throws:
  /// - not_held: empty, unlocked, or no lease of this election and this client
  /// - lost, closed and corrupt_lock: it leads no more
  /// - unconfirmed: the answer was lost. It still leads, with the old value or the new one
  /// - unreachable, server_refused, overloaded, or another refusal of the server: it still leads, with the old value
  ///
  /// Cancelled: operation_aborted. The value may still change.
  asio::awaitable<void> proclaim(const lease& leadership, std::string value) const;

  /// The leader, by one read; empty: none. A snapshot. `value` and `id` are empty for a holder that is no candidate,
  /// and `term` is then the newest fencing token, or 0. Throws unreachable, server_refused, overloaded.
  asio::awaitable<std::optional<leader_info>> leader() const;

  /// Waits until the leader is not `after`: another term, id or value, or none. Its TTL alone is no change. To observe:
  /// `for (auto now = co_await e.leader();; now = co_await e.next(now))`. Changes between two calls are seen as one.
  /// It waits through outages of Redis. It learns of a change by a message, of an end by TTL when the TTL that it has
  /// read is over, and of anything else within config::poll_cap. A leader with a lower term than `after` is an older
  /// state, for example of a replica that took over, and is passed over. After none, any leader is new. Terms never
  /// fall while Redis keeps the counter `redisson_lock_token:{name}`: keep the largest where a failover may lose it.
  /// While the client drains it throws shutting_down, and so do calls that wait already.
  asio::awaitable<std::optional<leader_info>> next(std::optional<leader_info> after) const;

  /// Breaks the leader's hold, and wakes candidates and observers. As mutex::force_unlock(); corrupt_lock for a holder
  /// that is no candidate. The broken leader goes on, until its next renewal at most: its term keeps its writes out.
  asio::awaitable<bool> force_unlock() const;

  /// A candidate as a mutex whose lock() is campaign(value): for with_lock and keep_running, whose body then leads, and
  /// for code that takes a mutex. Its functions throw invalid_argument for the value. any_of refuses it:
  /// invalid_config.
  mutex candidate(std::string value) const;

  const std::string& name() const noexcept;

 private:
  friend detail::access;
  explicit election(mutex lock);

  mutex lock_;
};

}  // namespace holdfast
