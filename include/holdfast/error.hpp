// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/error_condition.hpp>
#include <boost/system/result.hpp>
#include <boost/system/system_error.hpp>
#include <string>
#include <system_error>
#include <type_traits>

namespace holdfast {

/// Asio's own error code: locks, sockets, timers and cancellation share one catch type. Converts to std::error_code.
using error_code = boost::system::error_code;

/// A code tells the caller what to do. "Retry" means: the same call may succeed later without a change of program or
/// server.
enum class errc {
  lost = 1,            ///< The hold ended although its holder did not release it. The guarded work may have overlapped.
                       ///< Not held. Check or redo the work.
  not_held,            ///< This lease is empty, moved-from or already unlocked. Nothing was sent.
  closed,              ///< Of a lease: its client was shut down or destroyed. Not held. Of a mutex: it was moved from.
  corrupt_lock,        ///< The key is of another type, or a lock without TTL. Or its count or fencing counter is not a
                       ///< number. Not held. Look at the key.
  invalid_name,        ///< Names are 1 byte to 64 KiB, notes at most 200 bytes. Nothing was sent.
  invalid_ttl,         ///< A TTL or max_hold outside its range. Nothing was sent.
  invalid_wait,        ///< A negative wait, or a grace outside 0 to 24 h. Nothing was sent.
  invalid_config,      ///< A URL or a field of config cannot be used, or the server has no such database. No lock
                       ///< command was sent.
  unreachable,         ///< No answer from Redis in time. Retry. A hold that was held still is, until its validity ends.
  unconfirmed,         ///< Redis did not answer unlock(): released, or ends with its TTL; not held. Or count_down(),
                       ///< which goes on. Of force_unlock(), try_set(), proclaim(): unknown whether a copy ran.
  auth_failed,         ///< Wrong user or password, or none given where one is needed.
  no_permission,       ///< The ACL lacks a permission. The text is the server's and names the command, key or channel,
                       ///< except for some commands inside a script.
  not_primary,         ///< The server is a replica and was never a primary for this client. Or it is of another kind
                       ///< than the URL says: the text names the right one.
  server_refused,      ///< OOM, NOREPLICAS, MISCONF, LOADING, BUSY, max clients: Redis answers but does not write.
                       ///< Retry.
  quorum_failed,       ///< Of a red_lock: too few primaries have answered. Nothing is taken. Retry.
  protocol_error,      ///< The peer does not speak Redis as expected. An answer that cannot be parsed closes the
                       ///< connection.
  too_many_reentries,  ///< 2^31-1 re-entries of one hold. Still held.
  tls_failed,          ///< The text says: wrong CA, wrong host, expired, client certificate missing, or not TLS at all.
  overloaded,        ///< Too many commands are pending on the connection. Nothing was sent. Retry with less in flight.
  already_held,      ///< This owner holds the lock and cannot re-enter it this way: a fenced_mutex over a hold without
                     ///< token, any simple_mutex, or the write side of a shared_mutex that it reads. Still held.
  not_replicated,    ///< Fewer replicas than min_replicas had it in time. Nothing is taken: the grant is given back. Of
                     ///< renew(): still held, until the validity ends. Retry.
  shutting_down,     ///< The client was shut down, drains or is gone. This call (lock(), try_lock(), a query) took
                     ///< nothing. A call about a lease throws closed. Retry in another process.
  invalid_argument,  ///< A number of permits, a count, the size of a value, or an option of keep_running(), outside its
                     ///< range. Nothing was sent.
};

/// Groups of codes, by what to do about them: `if (e.code() == condition::retry_later)`. Compares with
/// holdfast::error_code and std::error_code. Two outcomes are in no group. One is unconfirmed: nothing is to be done,
/// because the section was exclusive and the release goes on. The other is a cancellation.
enum class condition {
  retry_later = 1,  ///< unreachable, server_refused, overloaded, quorum_failed, not_replicated, shutting_down: the same
                    ///< call may succeed later; after shutting_down in another process.
  no_longer_held,   ///< lost, closed, corrupt_lock: there is no hold, and the guarded work may have overlapped. From
                    ///< lock(): nothing was taken. Existing leases whose held() is true are not affected.
  misuse,  ///< not_held, invalid_name, invalid_ttl, invalid_wait, invalid_argument, too_many_reentries, already_held:
           ///< correct the calling program.
  setup,   ///< invalid_config, auth_failed, no_permission, not_primary, tls_failed, protocol_error, corrupt_lock: a
           ///< person must look at settings or server.
};

/// The library's only category. Thread-safe.
HOLDFAST_EXPORT const boost::system::error_category& category() noexcept;
HOLDFAST_EXPORT error_code make_error_code(errc) noexcept;
HOLDFAST_EXPORT boost::system::error_condition make_error_condition(condition) noexcept;

/// Thrown by every co_await of the library. A cancellation is the exception: boost::system::system_error with
/// operation_aborted.
/// what() has the code's meaning and the cause: lock name (escaped), server address, the server's words. For
/// unreachable it says why: refused, no such name, no answer. For lost it says how the loss is known. It never contains
/// a secret.
class HOLDFAST_EXPORT error : public boost::system::system_error {
 public:
  error(error_code code, const std::string& detail);
  error(const error&) = default;
  ~error() override;
};

/// A value or an error code; `.value()` throws. See as_result() in with_lock.hpp.
template <class T>
using result = boost::system::result<T>;

}  // namespace holdfast

template <>
struct boost::system::is_error_code_enum<holdfast::errc> : std::true_type {};
template <>
struct std::is_error_code_enum<holdfast::errc> : std::true_type {};
template <>
struct boost::system::is_error_condition_enum<holdfast::condition> : std::true_type {};
template <>
struct std::is_error_condition_enum<holdfast::condition> : std::true_type {};
