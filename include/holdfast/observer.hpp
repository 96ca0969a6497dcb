// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/error.hpp>
#include <holdfast/export.hpp>
#include <holdfast/owner_id.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace holdfast {

/// By what it is known that a hold is lost.
enum class loss_cause : unsigned char {
  none,         ///< it is not lost
  unconfirmed,  ///< its validity was over, and Redis had not confirmed it again
  not_renewed,  ///< its TTL was over, and nobody wanted it to be renewed
  denied,       ///< Redis answered that its key is gone or another's: it was broken or deleted from elsewhere, evicted,
                ///< or forgotten in a failover or a restart
  forced,       ///< the same, after force_unlock() by this client
  corrupt,      ///< its key has something else in it
};
inline constexpr std::size_t loss_causes = static_cast<std::size_t>(loss_cause::corrupt) + 1;
/// "unconfirmed"
HOLDFAST_EXPORT std::string_view to_string(loss_cause) noexcept;

/// The kinds of events.
enum class event_kind {
  // A call of lock(), try_lock() or try_lock_for() that has sent or awaited anything ends in exactly one of these.
  acquired,           ///< a lock was granted, and a hold begins; waited, waiters
  reentered,          ///< its owner held it already, and has one lease more: no hold begins; waited, count
  not_acquired,       ///< try_lock or try_lock_for gave up on a busy lock; waited, waiters
  acquire_failed,     ///< an error; reason, waited
  acquire_cancelled,  ///< its caller did not want it any more, or the client was closed: no failure; reason, waited

  // Each `acquired` is followed by exactly one of these, which ends the hold: see ends_hold(). held
  released,        ///< given back by the last unlock() or its lease's destructor, and Redis has confirmed it
  passed,          ///< the same, and it went to the next waiter of this client without a command: see config::turns
  release_failed,  ///< given back, but not confirmed in time (reason unconfirmed: it goes on, and released_late or
                   ///< release_given_up follows), or refused: the key ends with its TTL; reason
  lost,            ///< the hold ended without its holder's wish; reason, and in detail how that is known:
                   ///< Redis said so, the validity was over unconfirmed, it was not renewed, or force_unlock()
  closed,          ///< shutdown(), a drain()'s grace or the end of its client ended it: no loss. Its release goes on:
                   ///< released_late or release_given_up follows

  // Meanwhile, of a hold.
  dropped_at_once,  ///< a warning: `co_await m.lock();` locks nothing, and this looks like it. Told before `released`
                    ///< when a hold's only lease was destroyed in the very resumption that brought it to its
                    ///< coroutine, within 10 microseconds, and nothing was asked of it: neither a co_await nor
                    ///< anything that takes time was guarded. Not each such hold is found
  renewal_failed,   ///< a renewal got no answer or was refused; it is retried until the validity ends; reason
  suspended,        ///< it cannot be confirmed at present; it still holds until its validity ends; reason
  restored,         ///< a suspended hold was confirmed again

  // In the background: of what is no hold, or is none any more.
  released_late,     ///< given back: a late or cancelled grant, an unconfirmed release, the hold of a closed client,
                     ///< one that was lost by its expiry, or one whose release a replaced server had answered
  release_given_up,  ///< such a release was refused, or not confirmed until its key must be gone or the grace of
                     ///< shutdown() was over: the key ends with its TTL; reason
  waiting_for_ourselves,  ///< a lock() without owner waits, without a deadline, for a name that its own coroutine
                          ///< (the thread of its co_spawn) has locked without owner: for itself
  perhaps_waiting_for_ourselves,  ///< the same, but one of the two coroutines is not known: a hint, no alarm
  lock_order_broken,  ///< a warning: a call of multi_lock waits for this name, and its owner holds one that comes
  ///< after it in the order of all; the holder of this name may wait for that one, indefinitely; detail
  foreign_unlock,  ///< a warning: unlock() of a blocking lock by a thread that does not hold it through this object:
                   ///< nothing was done; reason (not_held), owner
  not_replicated,  ///< a grant that fewer replicas than min_replicas had in time is given back; its lock() tries
                   ///< again, its try_lock() fails; reason, detail

  // Of the command connection.
  outage,            ///< it went down or could not be made; with a name: Redis answers, and refuses what that lock()
                     ///< waits for; reason
  connected,         ///< it is up; detail: node, version and mode of the server, as INFO has them
  fencing_degraded,  ///< CLIENT ID, INFO or CLIENT KILL is refused: a command, or a subscription, of a dead
                     ///< connection cannot be fenced off; told once; detail
  notifications_degraded,  ///< a server or proxy has no SUBSCRIBE, or the ACL withholds PUBLISH: waiters find a
                           ///< released lock by asking (poll_cap). Told once for each connection, and once for
                           ///< PUBLISH; detail: the server's words

  // Of a client that follows Sentinel or a cluster.
  primary_changed,            ///< another server is the primary now: holds are suspended until it has confirmed them;
                              ///< detail: from which to which
  sentinels_unreachable,      ///< no majority of the sentinels has spoken for three seconds: a failover would be seen
                              ///< late or not at all; told once for each such time; detail: each and its cause
  ttl_shorter_than_failover,  ///< a warning: a hold that is renewed may end during a failover; told once; detail: the
                              ///< arithmetic

  // Of the primaries of a red_lock.
  vote_withheld,             ///< one was restarted or emptied, or is new: it has no vote for the longest TTL; detail
  delayed_restart_degraded,  ///< INFO is refused: a restart of a primary that keeps its marker is not seen; told
                             ///< once; detail

  // Of the primaries of a cluster.
  slots_moved,  ///< so many slots have another primary than before; told once a second at most; count, detail
};

/// One thing that happened. The views live as long as the call. What a kind does not know is empty or 0.
struct event {
  event_kind kind{};
  /// The lock's, without key_prefix, raw bytes. Empty for events of a connection, and for a call of any_of or of
  /// multi_lock that got none of its locks: the detail says how many those are.
  std::string_view name{};
  error_code reason{};                ///< why, where the kind says so
  std::chrono::nanoseconds waited{};  ///< from the call of lock() to its outcome
  std::chrono::nanoseconds held{};    ///< of a hold: from its grant until now, or until it was given back
  std::size_t waiters = 0;            ///< callers of this client that stood before this one when it came
  std::string_view detail{};          ///< server's words, node or cause; safe to print

  // Of a hold, and of a call: owner, ttl.
  std::optional<owner_id> owner{};       ///< whose; without a bound or given one, the call's own identity
  std::string_view id{};                 ///< as lease::id(), also in the background
  std::optional<std::uint64_t> token{};  ///< fencing token
  std::size_t count = 0;                 ///< leases that it has now; of slots_moved: slots
  std::chrono::milliseconds ttl{};       ///< asked for; of a hold with several leases the longest
  /// Which kind of lock, by the name of its class: "mutex", "fenced_mutex", "simple_mutex" or "red_lock". Lives as long
  /// as the program. Empty for events of a connection, and for those in the background.
  std::string_view lock_kind{};
  loss_cause cause = loss_cause::none;  ///< of lost
};

/// How many kinds there are: their numbers are 0 to event_kinds - 1, so that counters can be an array.
inline constexpr std::size_t event_kinds = static_cast<std::size_t>(event_kind::slots_moved) + 1;

/// True for released, passed, release_failed, lost and closed: the holds of a client at a moment are the `acquired`
/// less these.
constexpr bool ends_hold(event_kind kind) noexcept {
  return kind == event_kind::released || kind == event_kind::passed || kind == event_kind::release_failed ||
         kind == event_kind::lost || kind == event_kind::closed;
}

/// Short name of a kind: "acquired".
HOLDFAST_EXPORT std::string_view to_string(event_kind) noexcept;

/// A connection to a server. The views live as long as the call.
struct connection_facts {
  std::uint64_t number = 0;    ///< no other connection of this process has it; from 1 on
  std::string_view role{};     ///< "command" or "pubsub"
  std::string_view node{};     ///< the server: "redis://host:port", "rediss://host:port" or "redis+unix:///path"
  std::string_view address{};  ///< its host or the path of its socket
  std::uint16_t port = 0;      ///< 0: of a socket
};

/// The kinds of measurements.
enum class measurement_kind : unsigned char {
  // Each wait_began is followed by exactly one wait_ended. lock_kind, name
  wait_began,  ///< a call stands in the line of this lock: others stand before it, somebody holds it, or Redis cannot
               ///< be asked. A call of any_of stands in the line of each of its locks, one of multi_lock in one
               ///< line after the other
  wait_ended,  ///< it stands there no more, whatever became of the call

  // The first of a line asks Redis again. lock_kind, name
  woken,          ///< since it was told that the lock may be free: it got it
  woken_in_vain,  ///< the same, and somebody else has it
  polled,         ///< since it had waited for long enough without being told anything

  renewed,  ///< a hold was confirmed in the background, at one server; lock_kind, name, left, ttl
  command,  ///< a command about a lock was answered, or its connection ended before; name: its own, or the script's;
            ///< script, took, connection, failure: server_refused for an error reply, unconfirmed for none

  // Each connection_up is followed by exactly one connection_down. connection
  connection_up,    ///< it is there and introduced; count: for which time
  in_flight,        ///< the number of commands that were written to it and have no answer has changed; count: by how
                    ///< much
  connection_down,  ///< it has ended, also by the end of its client, and has no command in flight any more
};

/// Something that is not worth a line in a log, and is counted or timed. The views live as long as the call. What a
/// kind does not know is empty or 0.
struct measurement {
  measurement_kind kind{};
  bool script = false;           ///< it is one of holdfast's scripts
  std::string_view lock_kind{};  ///< as event::lock_kind
  std::string_view name{};       ///< of the lock; of the command, a constant
  const connection_facts* connection = nullptr;
  std::chrono::nanoseconds took{};  ///< from when the command was written until its answer was read
  std::chrono::nanoseconds left{};  ///< of the validity, when its confirmation came
  std::chrono::milliseconds ttl{};  ///< of the hold that was renewed
  std::int64_t count = 0;           ///< how often the connection was made; of in_flight: how many more, or fewer
  errc failure{};                   ///< of a command; errc{}: it was answered
};

/// Is told of everything, also of background events, which nobody else hears of: renewals, reconnects, late releases.
/// Called on the client's strand, one call at a time: be quick, do not block, and never notify a condition_variable_any
/// that waits with a lock of holdfast::blocking: it waits for an unlock() then. Set it in config::observer.
/// Ring an alarm for each lost and release_failed, and for the rate of release_given_up, renewal_failed and outage: a
/// restart of Redis or an idle connection closed by the server tells some, an orderly shutdown() none while it answers.
class HOLDFAST_EXPORT observer {
 public:
  virtual ~observer();
  virtual void on(const event&) noexcept;
  /// False: the events may come without their `id`, which costs more to make than all else in them. Asked once, when a
  /// client is made.
  virtual bool wants_ids() const noexcept { return true; }
  /// Something that is only counted: there may be several for each call of lock() and each renewal. Called as on() is.
  virtual void measured(const measurement&) noexcept;
};

/// An observer that passes everything on to both, to `first` first: metrics and an observer of one's own. Keeps both
/// alive. A null pointer is ignored; two give null. Thread-safe.
HOLDFAST_EXPORT std::shared_ptr<observer> tee(std::shared_ptr<observer> first, std::shared_ptr<observer> second);

}  // namespace holdfast
