// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

#include "redis/failure.hpp"
#include "redis/outcome.hpp"
#include "redis/request.hpp"

namespace holdfast::detail {

using redis::delivery;
using redis::outcome;
using redis::subscriber;
using redis::subscription;
using redis::urgency;

/// One of the servers; 0 where there is one alone.
using node_id = std::uint32_t;

/// Which server owns this key now, and how to talk to it. Used, closed and destroyed on the client's strand, or when
/// nobody runs it.
class topology {
 public:
  using handler = redis::handler;
  using link_listener = std::function<void(node_id node, bool up)>;

  virtual ~topology() = default;

  /// The server that owns `key` at present. Keys of one script must have the same.
  virtual node_id node_of(std::string_view key) const = 0;

  /// Sends the command to the server that owns `key`; connects first where needed. Obligations of one server run in the
  /// order of the calls, and so do the others; between the two there is no order before they are written. answered() is
  /// called exactly once, on the strand, never inside execute(), unless the command is withdrawn; see delivery for
  /// when. After the end of the client nothing is called.
  virtual redis::ticket execute(std::string_view key, redis::request asked) = 0;
  /// True: the command was not written and never will be. Nothing is called any more, except where execute() has
  /// refused it (ticket 0): then answered() is still to come.
  virtual bool withdraw(redis::ticket t) = 0;
  /// There is a connection to the server that owns `key`, and it is not silent for longer than a command may wait.
  virtual bool answering(std::string_view key) = 0;
  /// The server that owns `key` has answered a command after `when`, or has let us in or kept us out for good since. To
  /// refuse what it may accept later is no answer.
  virtual bool answered_since(std::string_view key, time_point when) = 0;
  /// Why no answer comes at present from the server that owns `key`, node and cause: unreachable, or server_refused
  /// where the server refuses connections.
  virtual redis::failure trouble(std::string_view key) const = 0;

  virtual subscription subscribe(std::string_view channel, subscriber& who) = 0;

  /// While true the connections in use are watched and re-made even with no command pending, so that an outage is
  /// noticed at once.
  virtual void keep_watch(bool on) = 0;
  /// Called on the strand when the connection to a server goes down that was up, and when it is up again. One listener.
  virtual void on_link_change(link_listener listener) = 0;

  /// Closes all connections at once and drops what is pending. No command, subscriber, listener or event sink is
  /// called any more.
  virtual void close() = 0;
};

}  // namespace holdfast::detail
