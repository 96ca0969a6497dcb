// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/error.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease_state.hpp>
#include <holdfast/owner.hpp>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace holdfast {
namespace asio = boost::asio;
using std::chrono::milliseconds;

namespace detail {
struct lease_record;
struct access;
}  // namespace detail

/// One hold of one name, move-only. May outlive its mutex, its client and its io_context.
/// Keep it in a variable. `co_await m.lock();` without one locks nothing, because the lease ends at the semicolon.
/// After fork() the parent keeps the hold. The child's copy is lost from the start and sends nothing.
/// Destruction and assignment release in the background, on any thread, even while another thread destroys the
/// io_context. They never block and never throw. They need no memory: if none is left, the release waits for the
/// client's next action. Failures go to the observer. The background is the client's io_context. If an exception leaves
/// io_context::run(), nothing is released before run() is called again, and the key ends with its TTL.
/// Queries may run on any thread, concurrently with anything except move and destruction of the same object. They do no
/// I/O and take no lock. unlock, renew and lost may be called the same way. They copy what they need before they
/// return: the lease may be moved or destroyed before the awaitable runs.
/// Each awaitable resumes on the awaiting coroutine's executor, never inside the call.
class [[nodiscard]] HOLDFAST_EXPORT lease {
 public:
  lease() noexcept = default;
  lease(lease&&) noexcept = default;
  lease& operator=(lease&&) noexcept;
  ~lease();

  /// Releases the hold. A re-entered hold is released by the last unlock. Renewal stops before anything is sent.
  /// An unlock that is not the last returns at once; Redis learns of it in the background. If re-entries were granted
  /// in between, several unlocks may each be the last when called. One release ends the hold then, and all get its
  /// result.
  /// If the next waiter of this client takes over the hold (config::turns), Redis is not asked. A loss that this client
  /// does not know yet is then not thrown here; it ends the waiter's hold.
  /// Throws:
  /// - lost: the section was not exclusive to its end
  /// - not_held: empty, moved-from or already unlocked; nothing is sent
  /// - unconfirmed: no answer within the command timeout; the release goes on in the background
  /// - closed
  /// - a refusal of the server: no_permission, corrupt_lock, not_primary, auth_failed, tls_failed, protocol_error
  ///
  /// Time without a connection and a second copy of the command count against the command timeout. Time in the queue of
  /// a connection that answers does not.
  /// In an outage the first unlock waits one command timeout. Until Redis answers something again, the next unlocks
  /// give their result at once, so nested locks do not add up.
  /// Cancelled: operation_aborted; the release goes on in the background. If the coroutine is already cancelled, Asio
  /// throws before the call begins, and the destructor releases. Source: Redisson RLock.unlock.
  asio::awaitable<void> unlock();

  /// Raises the TTL now, to `ttl`: 10 ms to 24 h; 0: the TTL that it was taken with. Never shortens it and does not
  /// restart max_hold.
  /// Throws lost, not_held, invalid_ttl, closed. After unreachable or a refusal of the server the lease is still held
  /// until its validity ends. Refusals: server_refused, no_permission, not_primary, auth_failed, tls_failed,
  /// protocol_error.
  /// Cancelled: operation_aborted; the TTL may have been raised.
  asio::awaitable<void> renew(milliseconds ttl = milliseconds::zero());

  /// Reports progress of the work: the time of max_hold restarts. Any thread, cheap, never blocks. Does nothing without
  /// max_hold.
  void feed() noexcept;

  /// True only while the hold is exclusive, by a comparison of clocks. Correct even if the executor stalls or the
  /// machine slept.
  [[nodiscard]] bool held() const noexcept;
  /// How long held() stays true at least, without a renewal; 0 if it is false.
  [[nodiscard]] milliseconds valid_for() const noexcept;
  [[nodiscard]] lease_state state() const noexcept;
  /// Deleted: "did I get it?" is the optional of try_lock, "is it still mine?" is held().
  explicit operator bool() const noexcept = delete;

  /// Returns the reason as soon as the hold is lost: lost or closed. Throws not_held when this lease ends by unlock or
  /// destruction: a return never means "released". Do not write `work(lease) || lease.lost()`: if the work throws, `||`
  /// goes on waiting for lost(). Use with_lock. Cancelled: operation_aborted, nothing changes.
  asio::awaitable<error_code> lost() const;

  /// The fencing token of the hold: strictly larger for each new hold of the name, the same for re-entries; see
  /// fenced_mutex. Empty if a plain mutex took the hold. It stays when the lease is lost or released.
  [[nodiscard]] std::optional<std::uint64_t> token() const noexcept;
  const std::string& name() const noexcept;  ///< empty for an empty lease
  /// The hold's owner field in Redis, `<client::id()>:<number>`, for logs and for lock_holder::id. After the n-th pass
  /// of a turn (config::turns) `/n` follows, which is not in Redis. Re-entries share the id; no other hold ever has it.
  /// Of permits, Redis has the first half of the UUID and each permit's number, in 16 bytes; the id has the first
  /// number. It stays when the lease is lost or released. Empty for an empty lease.
  std::string id() const;
  /// The owner of the hold, to re-enter elsewhere: `client.mutex(name, lease.owner())`. An empty lease returns a new
  /// identity.
  holdfast::owner owner() const noexcept;

 private:
  friend detail::access;
  std::shared_ptr<detail::lease_record> record_;  // plain memory: no Asio object
};

}  // namespace holdfast
