// SPDX-License-Identifier: BSL-1.0
// A holder that forks: the child has a copy of everything and holds nothing.
#include "support/fork.hpp"
#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("the child of a holder holds nothing and sends nothing and the parent holds on") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 900ms; });
  auto held = w.run(redis.mutex("m").lock());
  raw_client monitor(w.server);
  monitor.monitor();

  w.io.notify_fork(asio::execution_context::fork_prepare);
  const bool as_promised = in_child([&] {
    w.io.notify_fork(asio::execution_context::fork_child);
    bool good = !held.held() && held.valid_for() == 0ms && held.state() == lease_state::lost;
    w.pass(350ms);  // a renewal is due after 300 ms
    good &= w.code_of(redis.mutex("m").try_lock()) == errc::closed;
    good &= w.code_of(redis.mutex("n").lock()) == errc::closed;
    good &= w.code_of(held.renew()) == errc::closed;
    good &= w.code_of(held.unlock()) == errc::closed;
    held = lease();
    w.run(redis.shutdown(50ms));
    return good;
  });
  w.io.notify_fork(asio::execution_context::fork_parent);
  CHECK(as_promised);
  CHECK_FALSE(monitor.next_monitor_line(0ms));  // nobody else could have sent anything
  CHECK(held.held());
  w.until([&] { return held.valid_for() > 800ms; });  // renewed, by the parent
  w.run(held.unlock());
  CHECK(w.keys().empty());
  CHECK(w.heard->count(event::kind::lost) == 0);
}
