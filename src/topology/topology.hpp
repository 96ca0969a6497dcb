// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "base/lease_clock.hpp"
#include "redis/outcome.hpp"

namespace holdfast::detail {

using redis::outcome;
using redis::subscriber;
using redis::subscription;

/// Which server owns this key now, and how to talk to it. Used on the client's strand only.
class topology {
 public:
  using handler = redis::handler;

  /// Sends `command` (RESP bytes) to the server that owns `key`; connects first where needed. Commands of one connection run in the
  /// order of the calls. The handler is called exactly once, on the strand, never inside execute(), at the latest at `deadline`;
  /// a reply that comes later is consumed and dropped.
  virtual void execute(std::string_view key, std::string command, time_point deadline, handler done) = 0;

  virtual subscription subscribe(std::string_view channel, subscriber& who) = 0;

  /// While true the connection is watched and re-made even with no command pending, so that an outage is noticed at once.
  virtual void keep_watch(bool on) = 0;
  /// Called on the strand when a connection that was up goes down (false) and when it is up again (true). One listener.
  virtual void on_link_change(std::function<void(bool up)> listener) = 0;

 protected:
  ~topology() = default;
};

}  // namespace holdfast::detail
