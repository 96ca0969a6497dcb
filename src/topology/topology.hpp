// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function.hpp"
#include "base/lease_clock.hpp"
#include "redis/failure.hpp"
#include "redis/outcome.hpp"
#include "redis/request.hpp"

namespace holdfast::detail {

using redis::delivery;
using redis::outcome;
using redis::subscriber;
using redis::subscription;
using redis::urgency;

/// One of the servers; 0 if there is only one.
using node_id = std::uint32_t;
/// Keys that one script may use together: a slot of a cluster; 0 if any keys may.
using key_group = std::uint32_t;

/// The server that owns a key now, and the way to talk to it. Used, closed and destroyed on the client's strand, or
/// when nothing runs on it.
class topology {
 public:
  using handler = redis::handler;
  using link_listener = std::function<void(node_id node, bool up)>;
  using change_listener = std::function<void(std::string_view key, node_id node)>;

  virtual ~topology() = default;

  /// The server that owns `key` at present. The number of a server that is gone is not used again.
  virtual node_id node_of(std::string_view key) const = 0;
  /// Keys of one script must be in one group.
  virtual key_group group_of(std::string_view) const noexcept { return 0; }
  /// The same by the strictest servers: an address that looks like one server may have a cluster behind it.
  static key_group smallest_group_of(std::string_view key) noexcept;
  /// One name for each present primary, made of this stem, whose keys live there.
  virtual std::vector<std::string> name_on_each_primary(std::string_view stem) const { return {std::string(stem)}; }
  /// The run_id of the server that owns `key`, by its last connection. It changes with each start of the server. Empty:
  /// unknown, as in server_of(), or keys may move to another server. Such keys keep their group.
  virtual std::string run_of(std::string_view key) const = 0;
  /// The outcome::server of an answer that the owner of `key` would give now, by its last connection. 0: unknown,
  /// because there was no connection yet, or the server does not tell.
  virtual std::uint64_t server_of(std::string_view key) const = 0;

  /// Sends the command to the server that owns `key`, and connects first if needed. The obligations of one server run
  /// in the order of the calls. So do its other commands; an obligation may overtake them before they are written.
  /// answered() is called exactly once, on the strand and never inside execute(). Its time depends on the delivery.
  /// Nothing is called after a successful withdraw() or the end of the client. An answer that names another server, or
  /// says that its server cannot serve the key yet, is handled here (redirects).
  virtual redis::ticket execute(std::string_view key, redis::request asked) = 0;
  /// True: the command has not run and never will, and nothing is called any more. The exception is a command that
  /// execute() has refused (ticket 0): its answered() is still to come. False: the command was written, and is not sent
  /// again after a refusal.
  virtual bool withdraw(redis::ticket ticket) = 0;
  /// The server that owns `key` is connected, and is not silent for longer than a command may wait.
  virtual bool answering(std::string_view key) = 0;
  /// The server that owns `key` has answered a command or a handshake after `when`. A refusal counts only if it is
  /// final.
  virtual bool answered_since(std::string_view key, time_point when) = 0;
  /// The reason why the server that owns `key` does not answer at present, with the node: unreachable, or
  /// server_refused where the server refuses connections.
  virtual redis::failure trouble(std::string_view key) const = 0;
  /// The same, if that server has answered nothing after `when`, or is not answering(). Empty otherwise.
  ///
  /// Decision: silence is no contention. A bounded wait may end without an answer about its lock. It then calls this
  /// with the time when its command was written. If the server has answered anything since, the lock counts as busy.
  /// Otherwise the server is unreachable. The handshake of a new connection comes before the write, so it is no such
  /// answer.
  virtual std::optional<redis::failure> silence_since(std::string_view key, time_point when) {
    if (answering(key) && answered_since(key, when)) return std::nullopt;
    return trouble(key);
  }

  /// The number of independent primaries that have each key, so that a majority decides; 1: one server decides.
  virtual std::size_t primaries() const noexcept { return 1; }
  /// One of them, by its node_id. A command that needs a majority is sent to each by itself.
  virtual topology& primary(std::size_t) noexcept { return *this; }
  /// The last connection to the server that owns `key` has ended, or could not be made.
  virtual bool in_outage(std::string_view key) const = 0;
  /// The server's address, for texts.
  virtual std::string where(std::string_view key) const = 0;
  /// A vote of several primaries has taken this long, until its slowest answer.
  virtual void note_vote_time(lease_clock::duration) {}

  /// A demand on replicas: `wanted` of them must have what the server of this outcome::server has answered.
  struct replica_demand {
    unsigned wanted;
    std::uint64_t server;
    time_point deadline;
  };
  using replicas_handler = function<void(const std::optional<redis::failure>&, unsigned had)>;
  /// Asks how many replicas have all that the owner of `key` has executed until now. Waits for the wanted number until
  /// the deadline. If the key is moving and its next server has granted, that server is asked. `done` gets the number,
  /// or the reason why it is unknown, perhaps inside the call. The number is also unknown if another server owns the
  /// key now. A topology without replicas answers 0. The key of the granted lock is set to its present state.
  virtual void replicated(std::string_view, const replica_demand&, replicas_handler done) { done(std::nullopt, 0); }

  virtual subscription subscribe(std::string_view channel, subscriber& subscriber) = 0;

  /// One of several primaries has pushed a change of the key that the channel of this subscription is about. It counts
  /// as a message of that primary: its subscriber gets on_message() or on_rumour(), perhaps inside the call.
  virtual void count_as_message(const subscription&, node_id /*primary*/) {}

  /// Asks the server that owns `key` to push changes, until stop_pushing(). To ask again costs little. Meanwhile both
  /// connections to that server are kept, and made again after a loss. on_key_changed() reports when it pushes.
  /// Commands with delivery::track then say in outcome::tracked whether their keys are watched. A server that refuses
  /// is reported as push_degraded, and asked again on its next connection.
  virtual void start_pushing(std::string_view /*key*/) {}
  /// No push is needed any more: nothing holds the io_context for them. Servers go on pushing for start_pushing().
  virtual void stop_pushing() {}
  /// The server that owns `key` pushes changes now, of the keys that are tracked. Of several primaries: a majority.
  virtual bool pushes(std::string_view /*key*/) const { return false; }
  /// Called on the strand, never inside a call, after start_pushing():
  /// - with the key of the server that another connection has changed, or that has expired or was evicted. It was
  ///   tracked, and is no longer
  /// - with an empty key if any key of `node` may have changed, and none is tracked any more: the server begins to
  ///   push, it or the way to it has lost all that was tracked, or all keys were deleted. pushes() tells the first from
  ///   the others
  ///
  /// `node`: the node_id of the server; of several primaries the number of one. When slots move, on_keys_moved() is
  /// called as well, and the key must be asked for at its new server. One listener.
  virtual void on_key_changed(change_listener) {}

  /// While true, the connections in use are watched, and made again even without a pending command. So an outage is
  /// noticed at once.
  virtual void keep_watch(bool on) = 0;
  /// Called on the strand when a connection that was up goes down, and when it is up again or no longer needed. If its
  /// server gets keys again, the first command makes the connection. One listener.
  virtual void on_link_change(link_listener listener) = 0;
  /// Called on the strand when keys have another server than before. Links need not have changed. One listener, which
  /// gets the group that has moved. Empty: several may have moved.
  virtual void on_keys_moved(std::function<void(std::optional<key_group>)>) {}

  /// Closes all connections at once, and drops all pending commands. No command, subscriber, listener or event sink is
  /// called any more.
  virtual void close() = 0;
};

}  // namespace holdfast::detail
