// SPDX-License-Identifier: BSL-1.0
// A cancellation, wherever it finds the waiter.
#include <boost/asio/error.hpp>

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
namespace asio = boost::asio;

TEST_CASE_METHOD(engine_fixture, "cancelled behind others a waiter leaves without a command") {
  const auto a = lock("a");
  const auto b = lock("a");
  b.cancel();
  CHECK(b.failed_with(asio::error::operation_aborted));
  CHECK(server.count() == 1);
  grants();
  CHECK(a.granted());
  unlock(a);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "cancelled during the first try a waiter hands the turn to the next") {
  const auto a = lock("a");
  const auto b = lock("a");
  a.cancel();
  REQUIRE(in_flight() == 2);
  CHECK(wire(1) == "release(a; publish, redisson_lock__channel:{a}, #1)");
  grants();
  CHECK(in_flight() == 1);
  frees();
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(b.granted());
}

TEST_CASE_METHOD(engine_fixture, "cancelled before the subscription is acknowledged a waiter leaves nothing") {
  const auto a = lock("a");
  busy(10s);
  a.cancel();
  CHECK(server.count() == 1);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "cancelled while parked a waiter leaves nothing") {
  const auto a = lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  a.cancel();
  CHECK(server.count() == 2);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "cancelled while parked the first waiter leaves the next parked in its place") {
  const auto a = lock("a");
  const auto b = lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  a.cancel();
  CHECK(server.count() == 2);
  CHECK(subscribers("a") == 1);
  publishes("a");
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(b.granted());
}

TEST_CASE_METHOD(engine_fixture, "cancelled while it backs off a waiter leaves nothing") {
  const auto a = lock("a");
  errs("LOADING Redis is loading the dataset in memory");
  a.cancel();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a second cancellation and one after the grant change nothing") {
  const auto a = lock("a");
  a.cancel();
  a.cancel();
  const auto b = lock("b");
  grants();
  not_yours();
  grants();
  CHECK(b.granted());
  b.cancel();
  CHECK(b.granted());
}

TEST_CASE("whenever it is cancelled a wait leaves no key and nothing else") {
  // The same scenario each time, cancelled one event later: busy, subscribed, unanswered, refused, granted.
  for (int steps = 0;; ++steps) {
    CAPTURE(steps);
    engine_fixture f;
    f.node.hold("a", "other:1", f.clock.now() + 3s);
    std::vector<std::size_t> unexecuted;
    bool acknowledged = false;
    f.server.on_command = [&](const fake_topology::command&) {
      unexecuted.push_back(f.server.count() - 1);
      return std::nullopt;
    };
    const auto a = f.lock("a");
    const auto serve_one = [&] {  // one thing happens; false when nothing is left to happen but the passing of time
      if (!unexecuted.empty()) {
        const auto n = unexecuted.front();
        unexecuted.erase(unexecuted.begin());
        auto reply = f.obey(f.server.sent(n));
        if (!f.server.sent(n).open) return;  // executed all the same
        if (n % 3 == 1)
          f.server.fail(n, errc::unconfirmed);  // executed, but the answer is lost
        else
          f.server.reply(n, std::move(reply));
        return f.run();
      }
      if (f.subscribers("a") == 1 && !std::exchange(acknowledged, true)) return f.acknowledges("a");
      f.timers.advance_to_next();
    };
    bool granted = false;
    for (int i = 0; i < steps && !granted; ++i) {
      serve_one();
      granted = a.granted();
    }
    if (granted) {
      f.unlock(a);
    } else {
      a.cancel();
      CHECK(a.failed_with(asio::error::operation_aborted));
    }
    for (int i = 0; i < 100 && !(f.timers.idle() && unexecuted.empty()); ++i) serve_one();
    CHECK(f.node.fields_of(f.uuid) == 0);
    CHECK(f.locks->idle());
    CHECK(f.timers.idle());
    CHECK(f.subscribers("a") == 0);
    if (granted) {
      CHECK(steps > 6);
      break;
    }
    REQUIRE(steps < 100);
  }
}
