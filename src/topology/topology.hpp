// SPDX-License-Identifier: BSL-1.0
#pragma once
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

/// Which server owns this key now, and how to talk to it. Used on the client's strand only.
class topology {
 public:
  using handler = redis::handler;

  /// Sends the command to the server that owns `key`; connects first where needed. Obligations of one server run in the
  /// order of the calls, and so do the others; between the two there is no order before they are written. The handler
  /// is called exactly once, on the strand, never inside execute(); see delivery for when. After the end of the client
  /// nobody is called.
  virtual redis::ticket execute(std::string_view key, redis::request asked) = 0;
  /// True: the command was not written and never will be, and its handlers are not called.
  virtual bool withdraw(redis::ticket t) = 0;
  /// There is a connection, and its server is not silent for longer than a command may wait.
  virtual bool answering() = 0;
  /// A server has answered a command after `when`, or has been connected to since.
  virtual bool answered_since(time_point when) = 0;
  /// Why no answer comes at present, node and cause: unreachable, or server_refused where the server refuses
  /// connections.
  virtual redis::failure trouble() const = 0;

  virtual subscription subscribe(std::string_view channel, subscriber& who) = 0;

  /// While true the connection is watched and re-made even with no command pending, so that an outage is noticed at
  /// once.
  virtual void keep_watch(bool on) = 0;
  /// Called on the strand when a connection that was up goes down (false) and when it is up again (true). One listener.
  virtual void on_link_change(std::function<void(bool up)> listener) = 0;

 protected:
  ~topology() = default;
};

}  // namespace holdfast::detail
