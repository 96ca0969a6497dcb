// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <memory>
#include <utility>

namespace holdfast::sim {
class route;
}  // namespace holdfast::sim

namespace holdfast::testing {

class stage;

/// The connection path between one client and the server of a test: server::link_of(). Cheap to copy; may outlive both,
/// and does nothing then. Every function takes effect at once, never blocks and throws nothing but bad_alloc.
class link {
 public:
  /// The client's next command that takes, renews, releases or looks at a lock is executed, and its reply is lost. The
  /// connection ends instead of the reply. A new connection is made as soon as advance() lets time pass.
  void drop_next_reply();

  /// Every connection ends now, and a new one fails at once, until restore(). A command on its way to the server never
  /// arrives.
  void cut();

  /// Nothing arrives any more in either direction, and no error is reported: connections stay open, as after a cable
  /// was pulled. Attempts to connect get no answer, until restore().
  void fall_silent();

  /// New connections can be made and work. A connection that fell silent has lost bytes and stays silent. The client
  /// closes it when a command on it has timed out.
  void restore();

  /// One-way delay of each byte, in each direction: 0 to 1 h; 0 at first. Throws std::invalid_argument for anything
  /// else.
  void set_latency(std::chrono::nanoseconds);

 private:
  friend class server;
  link(std::shared_ptr<stage> on, sim::route& way) noexcept : stage_(std::move(on)), way_(&way) {}

  std::shared_ptr<stage> stage_;  // has the route
  sim::route* way_;
};

}  // namespace holdfast::testing
