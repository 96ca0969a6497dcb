// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/error.hpp>
#include <holdfast/export.hpp>

#include <chrono>
#include <cstddef>
#include <string_view>

namespace holdfast {

/// One thing that happened. The views live as long as the call.
struct event {
  enum class kind {
    acquired,              ///< a lock was granted; waited, waiters
    not_acquired,          ///< try_lock or try_lock_for gave up on a busy lock; waited, waiters
    acquire_failed,        ///< an acquire ended with an error or was cancelled; reason, waited
    released,              ///< a hold was given back, by unlock() or by its lease's destructor; held
    released_late,         ///< what nobody waits for any more was given back: a late or cancelled grant, an unconfirmed
                           ///< release
    release_failed,        ///< a release was not confirmed (reason unconfirmed: it goes on, and released_late or
                           ///< release_failed may follow) or was refused; at the latest the key ends with its TTL;
                           ///< reason
    renewal_failed,        ///< a renewal got no answer or was refused; it is retried until the validity ends; reason
    suspended,             ///< the hold cannot be confirmed at present; it still holds until its validity ends
    restored,              ///< a suspended hold was confirmed again
    lost,                  ///< the hold ended without its holder's wish; reason, held
    waiting_for_ourselves, ///< a lock() without owner waits for a name that this client holds without owner: perhaps
                           ///< for itself
    outage,                ///< the command connection went down or could not be made;
                           ///< with a name: Redis answers, and refuses what that lock() waits for
    connected,             ///< the command connection is up
    fencing_degraded,      ///< CLIENT ID, INFO or CLIENT KILL is refused: a command, or a subscription, of a dead
                           ///< connection cannot be fenced off; told once; detail
  };

  kind what{};
  std::string_view name{};           ///< the lock's, without key_prefix, raw bytes; empty for events of a connection
  error_code reason{};               ///< why, where the kind says so
  std::chrono::nanoseconds waited{}; ///< from the call of lock() to its outcome
  std::chrono::nanoseconds held{};   ///< from the grant to the end of the hold
  std::size_t waiters = 0;           ///< callers of this client that stood before this one when it came
  std::string_view detail{};         ///< server's words or node; safe to print
};

/// Short name of a kind: "acquired".
HOLDFAST_EXPORT std::string_view to_string(event::kind) noexcept;

/// Is told of everything, also of background events, which nobody else hears of: renewals, reconnects, late releases.
/// Called on the client's strand, one call at a time: be quick, do not block. Set it in config::observer.
class HOLDFAST_EXPORT observer {
 public:
  virtual ~observer();
  virtual void on(const event&) noexcept {}
};

}  // namespace holdfast
