// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace holdfast {
namespace asio = boost::asio;
using std::chrono::milliseconds;

namespace detail {
class core;
struct access;
struct lock_keys;
}  // namespace detail

/// Opens when it was counted down to 0, for all processes: Redisson's RCountDownLatch, with the verbs of std::latch.
/// Cheap to copy, holds nothing, may outlive its client (then: shutting_down).
///
/// One-shot: use a new name for each round. A latch that is set again at once may close before every waiter has seen it
/// open.
///
/// A latch that was not set is open: its wait() returns at once. So set it before anybody waits, by one program:
/// try_set() closes a latch that has opened anew. The count is the string `name`, without TTL: its end would look like
/// 0. Programs delete the key of a latch that will never open.
///
/// A process that dies before its count_down() is never counted, and the latch stays closed. Use wait_for() if that may
/// happen.
///
/// Each call is counted exactly once, also if connections end, answers are lost, or another server takes over. A call
/// that changes the count leaves a mark at `holdfast_done:{name}:<id>` for about a minute. A failover that loses the
/// count loses the mark with it: the client then sends its count-downs of the last ten seconds again.
///
/// Redis must keep its data. A latch whose key is lost is open, also one that was set just before a failover that lost
/// it.
///
/// In a cluster the name, with its key_prefix, must have no brace, else invalid_name: Redisson's channel always adds
/// braces. A client with several primaries (red_lock) has no latch: invalid_config.
///
/// While the client drains, wait() throws shutting_down, and so do calls that wait already. The other calls go on.
///
/// Every function may be called from any thread, copies its arguments, and returns a lazy awaitable. It resumes on the
/// awaiting coroutine's executor, never inside the call. Cancelled: operation_aborted at once. A wait that is cancelled
/// leaves no subscription and no key. A cancelled count_down() or try_set() may still have its effect.
/// Every function throws shutting_down after shutdown, closed if the latch was moved from, and invalid_name if the name
/// is empty or over 64 KiB. It throws corrupt_lock if the key is no count, and auth_failed, no_permission, not_primary,
/// tls_failed, protocol_error.
///
/// The ACL user needs the permissions of a mutex and more. Keys and channel, for the key_prefix `p`:
/// `~p* ~holdfast_done:{p* &redisson_countdownlatch__channel__{p*`. The commands GET and SET. connect() does not check
/// these.
class HOLDFAST_EXPORT latch {
 public:
  /// Sets the count: 1 to 2^31-1, else invalid_argument, and nothing is sent. Returns false while a count is left of
  /// another call. Takes at most a command timeout. Throws unreachable, server_refused, overloaded. Throws unconfirmed
  /// if the answer is lost: the count may be set.
  /// Source: Redisson's "RCountDownLatch.trySetCount".
  asio::awaitable<bool> try_set(std::uint32_t count) const;

  /// Counts n down: 1 to 2^32-1, else invalid_argument, and nothing is sent. A count below n becomes 0. At 0 the latch
  /// opens, and its key is gone. Of an open latch nothing is counted.
  /// Throws unconfirmed if Redis has not answered within the command timeout. The call goes on then, for 30 s more, and
  /// shutdown() waits for it within its grace. The observer gets released_late when it was counted, or
  /// release_given_up. Do not repeat the call after unconfirmed: that would be another count.
  /// Source: Redisson's "countDown".
  asio::awaitable<void> count_down(std::uint32_t n = 1) const;

  /// True if the latch is open, by one read; a snapshot. Throws as count().
  asio::awaitable<bool> try_wait() const;

  /// Waits until the latch is open. It waits through outages of Redis. It learns of the opening by a message, or within
  /// config::poll_cap if that is lost.
  asio::awaitable<void> wait() const;

  /// Waits at most `wait`; 0: as try_wait; negative: invalid_wait. Returns false if Redis has said meanwhile that the
  /// latch is closed, or has answered other commands alone. Throws unreachable or server_refused if Redis has said
  /// nothing.
  asio::awaitable<bool> wait_for(milliseconds wait) const;

  /// count_down(n), then wait(). After unconfirmed the count goes on, and wait() may be called by itself.
  asio::awaitable<void> arrive_and_wait(std::uint32_t n = 1) const;

  /// The count, by one read; 0: open, or not set. A larger count of another program is shown as 2^32-1. Throws
  /// unreachable, unconfirmed, server_refused, overloaded.
  asio::awaitable<std::uint32_t> count() const;

  const std::string& name() const noexcept;

 private:
  friend detail::access;
  latch(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>);

  std::weak_ptr<detail::core> core_;
  std::shared_ptr<const detail::lock_keys> keys_;
};

}  // namespace holdfast
