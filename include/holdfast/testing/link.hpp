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

/// The way between one client and the server of a test: server::link_of(). Cheap to copy; may outlive both, and does
/// nothing then. Every function takes effect at once, blocks for nothing and throws nothing but bad_alloc.
class link {
 public:
  /// The next command of this client that takes, renews, releases or looks at a lock does its work, and its reply never
  /// comes: the connection ends in its place. Another one is made as soon as advance() lets time pass.
  void drop_next_reply();

  /// Every connection ends now, and a new one fails at once, until restore(). A command that is on its way to the
  /// server never arrives.
  void cut();

  /// Nothing arrives any more, in neither direction, and nobody is told: connections stay open, as with a cable that
  /// was pulled. Attempts to connect get no answer, until restore().
  void fall_silent();

  /// New connections can be made, and arrive. One that fell silent has lost bytes and stays silent: the client gives it
  /// up when a command on it has timed out.
  void restore();

  /// How long each byte is on its way, there and back each: 0 to 1 h; 0 at first. Throws std::invalid_argument for
  /// anything else.
  void set_latency(std::chrono::nanoseconds);

 private:
  friend class server;
  link(std::shared_ptr<stage> on, sim::route& way) noexcept : stage_(std::move(on)), way_(&way) {}

  std::shared_ptr<stage> stage_;  // has the route
  sim::route* way_;
};

}  // namespace holdfast::testing
