// SPDX-License-Identifier: BSL-1.0
// A holder that forks: the child has a copy of everything and holds nothing.
#include <boost/asio/executor_work_guard.hpp>

#include "integration/world.hpp"
#include "support/fork.hpp"

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
    good &= w.code_of(redis.mutex("m").try_lock()) == errc::shutting_down;
    good &= w.code_of(redis.mutex("n").lock()) == errc::shutting_down;
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
  CHECK(w.heard->count(event_kind::lost) == 0);
}

TEST_CASE("a child that runs its copy of the context takes nothing from the parent") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 900ms; });
  auto kept = w.run(redis.mutex("kept").lock());
  asio::io_context io;
  client other(io.get_executor(), w.settings());
  const auto theirs = test::run(io, other.mutex("theirs").lock());

  w.io.notify_fork(asio::execution_context::fork_prepare);
  forked child([&] {
    w.io.notify_fork(asio::execution_context::fork_child);
    const auto never_idle = asio::make_work_guard(w.io);
    w.io.restart();
    w.io.run();
    return true;
  });
  w.io.notify_fork(asio::execution_context::fork_parent);
  for (int i = 0; i < 200; ++i) {
    CHECK_FALSE(w.run(redis.mutex("theirs").try_lock()).has_value());
    auto ours = w.run(redis.mutex("ours").lock());
    CHECK(w.eye("HLEN", "ours").integer() == 1);
    w.run(ours.unlock());
  }
  w.until([&] { return kept.valid_for() < 650ms; });
  w.until([&] { return kept.valid_for() > 800ms; });  // renewed: the alarms are ours as well
  CHECK(w.heard->count(event_kind::outage) == 0);
  CHECK(w.heard->count(event_kind::lost) == 0);
}

TEST_CASE(
    "the child of a client that waits for a latch counts nothing and waits for nothing, and the parent waits on") {
  world w;
  auto redis = w.make();
  const auto start = redis.latch("start");
  w.run(start.try_set(1));
  started<void> waits(w, start.wait());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_countdownlatch__channel__{start}").array()[1] == 1; });
  raw_client monitor(w.server);
  monitor.monitor();

  w.io.notify_fork(asio::execution_context::fork_prepare);
  const bool as_promised = in_child([&] {
    w.io.notify_fork(asio::execution_context::fork_child);
    w.pass(50ms);
    bool good = waits.answer && waits.answer->error() == errc::shutting_down;
    good &= w.code_of(start.count_down()) == errc::shutting_down;
    good &= w.code_of(start.wait()) == errc::shutting_down;
    w.run(redis.shutdown(50ms));
    return good;
  });
  w.io.notify_fork(asio::execution_context::fork_parent);
  CHECK(as_promised);
  CHECK_FALSE(monitor.next_monitor_line(0ms));  // nobody else could have sent anything
  CHECK_FALSE(waits.answer);
  w.run(start.count_down());
  w.until([&] { return waits.succeeded(); });
}

TEST_CASE("the child of an observer's client observes nothing, and the parent observes on") {
  world w;
  auto redis = w.make();
  const auto chief = redis.election("e");
  started<std::optional<leader_info>> observes(w, chief.next({}));
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "holdfast_election:{e}").array()[1] == 1; });
  raw_client monitor(w.server);
  monitor.monitor();

  w.io.notify_fork(asio::execution_context::fork_prepare);
  const bool as_promised = in_child([&] {
    w.io.notify_fork(asio::execution_context::fork_child);
    w.pass(50ms);
    bool good = observes.answer && observes.answer->error() == errc::shutting_down;
    good &= w.code_of(chief.leader()) == errc::shutting_down;
    good &= w.code_of(chief.campaign("child")) == errc::shutting_down;
    w.run(redis.shutdown(50ms));
    return good;
  });
  w.io.notify_fork(asio::execution_context::fork_parent);
  CHECK(as_promised);
  CHECK_FALSE(monitor.next_monitor_line(0ms));  // nobody else could have sent anything
  CHECK_FALSE(observes.answer);
  const auto lead = w.run(chief.campaign("parent"));
  w.until([&] { return observes.succeeded(); });
  CHECK(observes.answer->value()->value == "parent");
}
