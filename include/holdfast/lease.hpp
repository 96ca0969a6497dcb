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

/// What you hold: one hold of one name, move-only. May outlive its mutex, its client and its io_context.
/// It is the hold: `co_await m.lock();` without a variable locks nothing, because the lease ends at the semicolon.
/// After fork() the parent holds on; the child's copy is lost from the first moment and sends nothing.
/// Destruction and assignment release in the background, on any thread, also while the io_context is destroyed by
/// another. They never block, never throw and need no memory: without it the release waits for the next thing that the
/// client does. Failures go to the observer. The background is the client's io_context: when an exception has left
/// io_context::run(), nothing is released before run() is called again, and the key ends with its TTL.
/// Queries may run on any thread, concurrently with anything except move and destruction of the same object; they do no
/// I/O and take no lock. The verbs (unlock, renew, lost) may be called so too, and copy what they need before they
/// return: the lease may be moved or die before the awaitable runs.
/// Each awaitable resumes on the awaiting coroutine's executor, never inside the call.
class [[nodiscard]] HOLDFAST_EXPORT lease {
 public:
  lease() noexcept = default;
  lease(lease&&) noexcept = default;
  lease& operator=(lease&&) noexcept;
  ~lease();

  /// Gives the hold back; a re-entered one is given back at the last unlock. Renewal is disarmed before anything is
  /// sent.
  /// An unlock that is not the last waits for nothing; Redis hears of it in the background. Several may be the last,
  /// each when it was called, if re-entries were granted in between: one release ends the hold, and they all get its
  /// answer.
  /// Where the next waiter of this client gets the lock from this hold (config::turns), Redis is not asked: a loss that
  /// this client has not heard of yet is not thrown here, and ends the hold of that waiter.
  /// Throws lost (the section was not exclusive to its end), not_held (empty, moved-from, already unlocked: nothing is
  /// sent), unconfirmed (no answer within the command timeout; it goes on in the background), closed, and what the
  /// server refuses with: no_permission, corrupt_lock, not_primary, auth_failed, tls_failed, protocol_error.
  /// The time without a connection and a second copy count against the command timeout. The time in the queue of a
  /// connection that answers does not.
  /// In an outage the unlocks of nested locks wait for one command timeout together: when one has waited in vain, and
  /// Redis has not answered anything since, the next give their answer at once.
  /// Cancelled: operation_aborted, the release goes on in the background. In a coroutine that is already cancelled Asio
  /// throws before the call begins: then the destructor releases. Source: Redisson RLock.unlock.
  asio::awaitable<void> unlock();

  /// Raises the TTL now, to `ttl` (0: the TTL it was taken with; else 10 ms to 24 h); never shortens it and does not
  /// restart max_hold.
  /// Throws lost, not_held, invalid_ttl, closed; still held until its validity ends with unreachable, and what the
  /// server refuses with: server_refused, no_permission, not_primary, auth_failed, tls_failed, protocol_error.
  /// Cancelled: operation_aborted; the TTL may have been raised.
  asio::awaitable<void> renew(milliseconds ttl = milliseconds::zero());

  /// Says that the work makes progress: the time of max_hold starts anew. Any thread, cheap, never blocks; nothing
  /// without max_hold.
  void feed() noexcept;

  /// True only while the hold is exclusive, by a comparison of clocks: correct also when the executor stalls or the
  /// machine slept.
  [[nodiscard]] bool held() const noexcept;
  /// How long held() will at least stay true without a renewal; 0 when it is false.
  [[nodiscard]] milliseconds valid_for() const noexcept;
  [[nodiscard]] lease_state state() const noexcept;
  /// Deleted: "did I get it?" is the optional of try_lock, "is it still mine?" is held().
  explicit operator bool() const noexcept = delete;

  /// Returns the reason as soon as the hold is lost: lost or closed. Throws not_held when this lease ends by unlock or
  /// destruction, so that it never means "released". Do not write `work(lease) || lease.lost()`: if the work throws,
  /// `||` goes on waiting for lost(). Use with_lock. Cancelled: operation_aborted, nothing changes.
  asio::awaitable<error_code> lost() const;

  /// The fencing token of the hold: strictly larger for each new hold of the name, the same for re-entries; see
  /// fenced_mutex. Empty where the hold was taken by a plain mutex. It stays when the lease is lost or released.
  [[nodiscard]] std::optional<std::uint64_t> token() const noexcept;
  const std::string& name() const noexcept;  ///< empty for an empty lease
  /// The hold's owner field in Redis, `<client::id()>:<number>`, for logs and for lock_holder::id. Where the hold got
  /// the lock by the n-th pass of a turn (config::turns), `/n` follows, which is not in Redis. Re-entries share it, no
  /// other hold ever has it. It stays when the lease is lost or released. Empty for an empty lease.
  std::string id() const;
  /// To re-enter elsewhere: `client.mutex(name, lease.owner())`. A new identity for an empty lease.
  holdfast::owner owner() const noexcept;

 private:
  friend detail::access;
  std::shared_ptr<detail::lease_record> record_;  // plain memory: no Asio object
};

}  // namespace holdfast
