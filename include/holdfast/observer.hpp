// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/error.hpp>
#include <holdfast/export.hpp>
#include <holdfast/owner_id.hpp>
#include <holdfast/worker_state.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace holdfast {

/// How a loss of a hold is known.
enum class loss_cause : unsigned char {
  none,         ///< not lost
  unconfirmed,  ///< validity over, and Redis had not confirmed the hold again
  not_renewed,  ///< TTL over, and the hold was not to be renewed
  denied,       ///< Redis answered that the key is gone or another's. It was broken or deleted from elsewhere, evicted,
                ///< or forgotten in a failover or a restart
  forced,       ///< as denied, after force_unlock() by this client
  corrupt,      ///< its key has other contents
};
inline constexpr std::size_t loss_causes = static_cast<std::size_t>(loss_cause::corrupt) + 1;
/// The name of a cause: "unconfirmed".
HOLDFAST_EXPORT std::string_view to_string(loss_cause) noexcept;

/// The kinds of events.
enum class event_kind {
  // Ends of a call of lock(), try_lock() or try_lock_for(). A call that has sent or awaited anything ends in exactly
  // one of these.
  acquired,           ///< a lock was granted and a hold begins. Fields: waited, waiters
  reentered,          ///< one lease more of a hold: of its owner, or of a reader that it joins. Fields: waited, count
  not_acquired,       ///< try_lock or try_lock_for gave up on a busy lock. Fields: waited, waiters
  acquire_failed,     ///< an error. Fields: reason, waited
  acquire_cancelled,  ///< the caller cancelled, or the client was closed; not a failure. Fields: reason, waited

  // Ends of a hold: each `acquired` is followed by exactly one of these; see ends_hold(). Field of all: held
  released,        ///< released by the last unlock() or its lease's destructor; Redis has confirmed it
  passed,          ///< the same, and the lock went to the next waiter of this client without a command: see
                   ///< config::turns
  release_failed,  ///< its release was refused, or not confirmed in time. After a refusal the key ends with its TTL. An
                   ///< unconfirmed release (reason unconfirmed) goes on: released_late or release_given_up follows.
                   ///< Field: reason
  lost,            ///< the hold ended although its holder did not release it. Fields: reason; detail (how the loss is
                   ///< known: Redis said so, validity over unconfirmed, not renewed, or force_unlock())
  closed,          ///< shutdown(), a drain()'s grace or the end of its client ended the hold; not a loss. Its release
                   ///< goes on: released_late or release_given_up follows

  // During a hold.
  dropped_at_once,  ///< a warning: this looks like `co_await m.lock();`, which locks nothing. Comes before `released`,
                    ///< if a hold's only lease was destroyed in the resumption that delivered it. That was within 10
                    ///< microseconds and without a call on the lease. So it guarded no co_await and no work that takes
                    ///< time. Not every such hold is found
  renewal_failed,   ///< a renewal got no answer or was refused; it is retried until the validity ends. Field: reason
  suspended,        ///< the hold cannot be confirmed now; it still holds until its validity ends. Field: reason
  restored,         ///< a suspended hold was confirmed again

  // In the background: not of a hold, or of one that has ended.
  released_late,     ///< a late or cancelled grant was released, or an unconfirmed release was confirmed. Also for
                     ///< holds of a closed client, holds lost by expiry, and a hold whose release a replaced server had
                     ///< answered. Of a latch: such a count-down was confirmed
  release_given_up,  ///< such a release was refused, or not confirmed in time: before its key must be gone, or before
                     ///< the grace of shutdown() was over. The key ends with its TTL. Of a latch: such a count-down.
                     ///< Field: reason
  waiting_for_ourselves,  ///< a lock() without owner and without a deadline waits for itself: its own coroutine (the
                          ///< thread of its co_spawn) has locked this name without owner
  perhaps_waiting_for_ourselves,  ///< the same, but one of the two coroutines is not known: a hint, not an alarm
  lock_order_broken,  ///< a warning: a call of multi_lock waits for this name, and its owner holds a lock that comes
                      ///< later in the order. The holder of this name may wait for that one, indefinitely. Field:
                      ///< detail
  foreign_unlock,  ///< a warning: unlock() of a blocking lock by a thread that does not hold it through this object. It
                   ///< did nothing. Fields: reason (not_held), owner
  not_replicated,  ///< fewer replicas than min_replicas had a grant in time; it is given back. Its lock() tries again,
                   ///< its try_lock() fails. Fields: reason, detail

  // The command connection.
  outage,            ///< the connection went down or could not be made. With a name: Redis answers, and refuses what
                     ///< that lock() waits for. Field: reason
  connected,         ///< the connection is up. Field: detail (node, version and mode of the server, from INFO)
  fencing_degraded,  ///< CLIENT ID, INFO or CLIENT KILL is refused. A command or a subscription of a dead connection
                     ///< cannot be fenced off. Reported once. Field: detail
  notifications_degraded,  ///< a server or proxy has no SUBSCRIBE, or the ACL withholds PUBLISH. Waiters find a
                           ///< released lock by asking (poll_cap). Reported once for each connection, and once for
                           ///< PUBLISH. Field: detail (the server's words)
  push_degraded,           ///< a server pushes no changes of locks: by its version (config::push), or because a proxy
                           ///< or an ACL withholds CLIENT TRACKING, CLIENT CACHING or the channel
                           ///< `__redis__:invalidate`. Waiters and holders find changes by asking. Reported once for
                           ///< each connection. Field: detail (the server's words)
  notes_degraded,          ///< the ACL withholds a right of config::notes; locks are not affected. Reported once.
                           ///< Field: detail (the server's words)

  // For a client that follows Sentinel or a cluster.
  primary_changed,            ///< another server is the primary now; holds are suspended until it has confirmed them.
                              ///< Field: detail (old and new primary)
  sentinels_unreachable,      ///< no majority of the sentinels has answered for three seconds. A failover would be
                              ///< noticed late or not at all. Reported once for each such time. Field: detail (each
                              ///< sentinel and its cause)
  ttl_shorter_than_failover,  ///< a warning: a renewed hold may end during a failover. Reported once. Field: detail
                              ///< (the arithmetic)

  // The primaries of a red_lock.
  vote_withheld,             ///< a primary was restarted or emptied, or is new; it has no vote for the longest TTL.
                             ///< Field: detail
  delayed_restart_degraded,  ///< INFO is refused; a restart of a primary that keeps its marker is not noticed. Reported
                             ///< once. Field: detail

  // The primaries of a cluster.
  slots_moved,  ///< slots have another primary than before; reported once a second at most. Fields: count (of slots),
                ///< detail
};

/// One event. The views live as long as the call. A field that a kind does not set is empty or 0.
struct event {
  event_kind kind{};
  /// Name of the lock, without key_prefix, raw bytes. Empty for events of a connection. Also empty for a call of any_of
  /// or multi_lock that got none of its locks: the detail says how many there are.
  std::string_view name{};
  error_code reason{};                ///< the cause, if the kind has one
  std::chrono::nanoseconds waited{};  ///< from the call of lock() to its outcome
  std::chrono::nanoseconds held{};    ///< age of a hold: from its grant until now, or until it was released
  std::size_t waiters = 0;            ///< callers of this client that waited before this one when it came
  std::string_view detail{};          ///< the server's words, node or cause; safe to print

  // For a hold; owner and ttl also for a call.
  std::optional<owner_id> owner{};       ///< the owner; without a bound or given one, the call's own identity
  std::string_view id{};                 ///< as lease::id(), also in the background
  std::optional<std::uint64_t> token{};  ///< fencing token
  std::size_t count = 0;                 ///< leases that the hold has now; of slots_moved: slots
  std::chrono::milliseconds ttl{};       ///< requested TTL; of a hold with several leases the longest
  /// Kind of the lock, by the name of its class: "mutex", "fenced_mutex", "fair_mutex", "simple_mutex", "red_lock",
  /// "election", "expirable_semaphore", or "shared_mutex" for a writer and "shared_mutex_reader" for a reader. Lives as
  /// long as the program. Empty for events of a connection and for those in the background.
  std::string_view lock_kind{};
  loss_cause cause = loss_cause::none;  ///< for lost
};

/// Number of kinds. Their values are 0 to event_kinds - 1, so that counters can be an array.
inline constexpr std::size_t event_kinds = static_cast<std::size_t>(event_kind::slots_moved) + 1;

/// True for released, passed, release_failed, lost and closed. The current holds of a client are the `acquired` less
/// these.
constexpr bool ends_hold(event_kind kind) noexcept {
  return kind == event_kind::released || kind == event_kind::passed || kind == event_kind::release_failed ||
         kind == event_kind::lost || kind == event_kind::closed;
}

/// The short name of a kind: "acquired".
HOLDFAST_EXPORT std::string_view to_string(event_kind) noexcept;

/// A connection to a server. The views live as long as the call.
struct connection_facts {
  std::uint64_t number = 0;    ///< unique among the connections of this process; from 1 on
  std::string_view role{};     ///< "command" or "pubsub"
  std::string_view node{};     ///< the server: "redis://host:port", "rediss://host:port" or "redis+unix:///path"
  std::string_view address{};  ///< its host or the path of its socket
  std::uint16_t port = 0;      ///< 0: a unix socket
};

/// The kinds of measurements.
enum class measurement_kind : unsigned char {
  // The waiters of a lock: each wait_began is followed by exactly one wait_ended. Fields: lock_kind, name
  wait_began,  ///< a call begins to wait for this lock: other waiters are before it, the lock is held, or Redis cannot
               ///< be asked. A call of any_of waits for each of its locks at once, one of multi_lock for one after the
               ///< other. Of a latch: a call of wait() begins
  wait_ended,  ///< the call waits no more, whatever its outcome

  // The first waiter of a lock asks Redis again. Fields: lock_kind, name
  woken,          ///< after a notification that the lock may be free: it got the lock
  woken_in_vain,  ///< the same, and another client has the lock
  polled,         ///< after it had waited long enough without a notification

  pushed,   ///< the server has pushed that another client has changed the key of a lock that is waited for or held, or
            ///< that it has expired. Fields: lock_kind, name
  renewed,  ///< a hold was confirmed in the background, at one server. Fields: lock_kind, name, left, ttl
  command,  ///< a command about a lock was answered, or its connection ended before. Fields: name (the command's own,
            ///< or the script's), script, took, connection, failure (server_refused for an error reply, unconfirmed for
            ///< none)

  // The workers of keep_running(): each worker_entered is followed by exactly one worker_left. Fields: lock_kind, name
  // (of an any_of only while it runs)
  worker_entered,    ///< a worker has begun, or is in another state. Field: state
  worker_left,       ///< it is in this state no more. Field: state
  worker_run_ended,  ///< a run of its body has ended. Field: outcome

  // Connections: each connection_up is followed by exactly one connection_down. Field: connection
  connection_up,    ///< the connection is up and its handshake is done. Field: count (how often it was made)
  in_flight,        ///< the number of commands written to it and not answered has changed. Field: count (the
                    ///< difference)
  connection_down,  ///< the connection has ended, also by the end of its client, and has no command in flight
};

/// Something too small for a line in a log, to be counted or timed. The views live as long as the call. A field that a
/// kind does not set is empty or 0.
struct measurement {
  measurement_kind kind{};
  bool script = false;           ///< the command is one of holdfast's scripts
  std::string_view lock_kind{};  ///< as event::lock_kind
  std::string_view name{};       ///< name of the lock; of a command, a constant
  const connection_facts* connection = nullptr;
  std::chrono::nanoseconds took{};  ///< from the write of the command until its answer was read
  std::chrono::nanoseconds left{};  ///< validity that was left when its confirmation came
  std::chrono::milliseconds ttl{};  ///< TTL of the renewed hold
  std::int64_t count = 0;           ///< how often the connection was made; of in_flight: the difference, which may be
                                    ///< negative
  errc failure{};                   ///< of a command; errc{}: it was answered
  worker_state state{};             ///< of a worker
  run_outcome outcome{};            ///< of worker_run_ended
};

/// Receives everything, including background events that are reported nowhere else: renewals, reconnects, late
/// releases. Set it in config::observer. It is called on the client's strand, one call at a time: be quick and do not
/// block. Never notify a condition_variable_any that waits with a lock of holdfast::blocking: the notification then
/// waits for an unlock().
/// Alert on each lost and release_failed, and on the rate of release_given_up, renewal_failed and outage. A restart of
/// Redis, or an idle connection that the server closes, causes some of these. An orderly shutdown() causes none while
/// Redis answers.
class HOLDFAST_EXPORT observer {
 public:
  virtual ~observer();
  virtual void on(const event&) noexcept;
  /// False: events may come without `id`, which costs more to make than all other fields. Asked once, when a client is
  /// made.
  virtual bool wants_ids() const noexcept { return true; }
  /// Receives what is only counted. There may be several for each call of lock() and each renewal. Called as on() is.
  virtual void measured(const measurement&) noexcept;
};

/// An observer that passes everything on to both, `first` first. Use it for metrics and an observer of your own. Keeps
/// both alive. A null pointer is ignored; two null pointers give null. Thread-safe.
HOLDFAST_EXPORT std::shared_ptr<observer> tee(std::shared_ptr<observer> first, std::shared_ptr<observer> second);

}  // namespace holdfast
