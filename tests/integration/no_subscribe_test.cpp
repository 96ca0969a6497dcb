// SPDX-License-Identifier: BSL-1.0
// A server without SUBSCRIBE: connect() says so, the observer is told once, and a waiter finds a released lock by
// asking.
#include <atomic>
#include <memory>
#include <string>

#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// Counts pub/sub connections.
struct counting final : observer {
  void on(const event& e) noexcept override { events.on(e); }
  void measured(const measurement& m) noexcept override {
    connections += m.kind == measurement_kind::connection_up && m.connection->role == "pubsub";
  }

  recorder events;
  std::atomic<int> connections{0};
};

}  // namespace

TEST_CASE("without SUBSCRIBE connect says why, the observer is told once, and a waiter has the lock by asking") {
  world w({.arguments = {"--rename-command", "SUBSCRIBE", ""}});
  const auto seen = std::make_shared<counting>();
  auto redis = w.make([&](config& c) { c.observer = seen, c.poll_cap = 200ms; });
  std::string text;
  error_code code;
  try {
    w.run(redis.connect());
  } catch (const error& e) {
    code = e.code();
    text = e.what();
  }
  INFO(text);
  CHECK(code == errc::protocol_error);
  CHECK(text.find("SUBSCRIBE: ERR unknown command") != text.npos);
  auto other = w.make();
  auto held = w.run(other.mutex("m").lock());
  const int before = seen->connections;
  started<lease> waits(w, redis.mutex("m").lock());
  w.pass(3s);
  CHECK(seen->connections - before <= 1);
  CHECK_FALSE(waits.answer);
  w.run(held.unlock());
  w.until([&] { return waits.succeeded(); });
  CHECK(seen->events.count(event_kind::notifications_degraded) == 1);
}
