// SPDX-License-Identifier: BSL-1.0
// Latches in an engine: a call that changes a count is sent until it is answered, and who waits leaves nothing behind.
#include "base/cancelled.hpp"
#include "protocol/latch/countdown_latch.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// Callers that wait, as an observer counts them.
struct waiter_count final : observer {
  int waiters = 0;

  void measured(const measurement& each) noexcept override {
    CHECK(each.lock_kind == "latch");
    waiters += (each.kind == measurement_kind::wait_began) - (each.kind == measurement_kind::wait_ended);
  }
};

struct latch_fixture : engine_fixture {
  latch_fixture() : engine_fixture(brief()) {}

  static config brief() {
    config settings;
    settings.command_timeout = 100ms;
    return settings;
  }
  detail::shared_keys latch() const { return keys("a", detail::countdown_latch); }
  std::string channel() const { return detail::channel_of(*latch()); }

  verb_call count_down(std::uint32_t n = 1) {
    verb_call c;
    locks->latches().count_down(latch(), n, locks->new_field(),
                                [c](const std::optional<detail::failure>& failed) { c.answer(failed); });
    return c;
  }
  verb_call try_set(std::uint32_t count) {
    verb_call c;
    locks->latches().try_set(latch(), count, locks->new_field(),
                             [c](auto&& answer) { c.answer(answer.failed, answer.value); });
    return c;
  }
  verb_call wait(detail::time_point deadline = detail::time_point::max()) {
    verb_call c;
    c.place(locks->latches().wait(latch(), deadline, [c](auto&& answer) { c.answer(answer.failed, answer.value); }));
    return c;
  }
  /// A caller that has found it closed, and listens.
  verb_call wait_and_listen() {
    const auto c = wait();
    answers(replies::string("1"));
    server.acknowledge(channel());
    answers(replies::string("1"));
    CHECK(c.waits());
    return c;
  }
  void check_nothing_is_left() {
    engine_fixture::check_nothing_is_left();
    CHECK(server.subscribers(channel()) == 0);
  }
};

}  // namespace

TEST_CASE_METHOD(latch_fixture, "a count-down whose connection ends is sent again with the same mark") {
  const auto c = count_down(3);
  const std::string sent = "count_down(a, holdfast_done:{a}:" + uuid + ":1; 3, 60200, publish, " + channel() + ")";
  CHECK(last_sent() == sent);
  fails(errc::unconfirmed);
  advance(0ms);
  CHECK(server.count() == 2);
  CHECK(last_sent() == sent);
  CHECK(c.waits());
  answers(replies::integers({2, 0}));
  CHECK(c.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(latch_fixture, "a set whose answers are lost is unconfirmed, and one that was never sent is not") {
  const auto lost = try_set(3);
  fails(errc::unconfirmed);
  advance(0ms);
  fails(errc::unreachable);
  CHECK(lost.failed_with(errc::unconfirmed));
  const auto answered = try_set(3);
  fails(errc::unconfirmed);
  advance(0ms);
  answers(replies::integers({1, 0}));
  CHECK(answered.succeeded());
  link_down();
  const auto not_sent = try_set(3);
  advance(10s);
  CHECK(not_sent.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(latch_fixture, "a caller that waits for a latch is counted until its wait ends, or its client") {
  const auto count = std::make_shared<waiter_count>();
  settings.observer = count;
  const auto let_in = wait_and_listen();
  CHECK(count->waiters == 1);
  server.push(channel(), "0");
  answers(replies::nil());
  CHECK(let_in.value());
  CHECK(count->waiters == 0);
  auto cancelled = wait();
  CHECK(count->waiters == 1);
  cancelled.cancel();
  CHECK(count->waiters == 0);
  wait();
  CHECK(count->waiters == 1);
  locks.reset();
  CHECK(count->waiters == 0);
}

TEST_CASE_METHOD(latch_fixture, "a count-down that is late tells its caller so, and is counted later") {
  link_down();
  const auto c = count_down();
  advance(100ms);
  CHECK(c.failed_with(errc::unconfirmed));
  advance(5s);
  link_up();
  CHECK(heard().empty());
  answers(replies::integers({0, 1}));
  CHECK(heard() == "released_late");
  check_nothing_is_left();
}

TEST_CASE_METHOD(latch_fixture, "a count-down without an answer is given up half a mark's life after the call") {
  link_down();
  const auto c = count_down();
  advance(29s);
  CHECK_FALSE(locks->idle());
  advance(3s);
  CHECK(heard() == "release_given_up");
  CHECK(c.failed_with(errc::unconfirmed));
  CHECK(locks->idle());
}

TEST_CASE_METHOD(latch_fixture, "a refusal of the server ends a count-down at once") {
  const auto c = count_down();
  errs("NOPERM no");
  CHECK(c.failed_with(errc::no_permission));
  check_nothing_is_left();
}

TEST_CASE_METHOD(latch_fixture, "a count-down that one server has answered is sent to the next one") {
  server.run_ids = {"one"};
  count_down();
  answers(replies::integers({0, 0}));
  server.change_server();
  link_down();
  link_up();
  REQUIRE(in_flight() == 1);
  CHECK(last_sent().starts_with("count_down(a, holdfast_done:{a}:" + uuid + ":1;"));
  answers(replies::integers({0, 0}));
}

TEST_CASE_METHOD(latch_fixture, "a set whose answer is lost is sent again with the same mark") {
  const auto c = try_set(2);
  const auto sent = last_sent();
  CHECK(sent == "latch_set(a, holdfast_done:{a}:" + uuid + ":1; 2, 60200, publish, " + channel() + ")");
  fails(errc::unconfirmed);
  CHECK(server.count() == 2);
  CHECK(last_sent() == sent);
  answers(replies::integers({1, 0}));
  CHECK(c.value());
  check_nothing_is_left();
}

TEST_CASE_METHOD(latch_fixture, "a caller that finds the latch open waits for nothing") {
  const auto c = wait();
  CHECK(server.last().line() == "GET a");
  answers(replies::nil());
  CHECK(c.value());
  CHECK(server.subscribe_calls(channel()) == 0);
  check_nothing_is_left();
}

TEST_CASE_METHOD(latch_fixture, "a caller that waits looks again after the acknowledgement and after a message") {
  const auto c = wait_and_listen();
  CHECK(in_flight() == 0);
  server.push(channel(), "0");
  answers(replies::nil());
  CHECK(c.value());
  check_nothing_is_left();
}

TEST_CASE_METHOD(latch_fixture, "a caller that hears nothing looks again after the poll cap") {
  const auto c = wait_and_listen();
  advance(settings.poll_cap);
  answers(replies::nil());
  CHECK(c.value());
}

TEST_CASE_METHOD(latch_fixture, "a caller whose time is over gets no, and leaves nothing") {
  const auto c = wait(clock.now() + 1s);
  answers(replies::string("1"));
  server.acknowledge(channel());
  answers(replies::string("1"));
  advance(1s);
  CHECK(c.succeeded());
  CHECK_FALSE(c.value());
  check_nothing_is_left();
}

TEST_CASE_METHOD(latch_fixture, "a caller that never had an answer gets unreachable at the end of its time") {
  link_down();
  const auto c = wait(clock.now() + 1s);
  advance(1s);
  CHECK(c.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(latch_fixture, "a caller waits through an outage") {
  const auto c = wait_and_listen();
  link_down();
  advance(10s);
  CHECK(c.waits());
  link_up();
  play_all();
  advance(settings.poll_cap);
  CHECK(c.value());
}

TEST_CASE_METHOD(latch_fixture, "a caller that is cancelled anywhere leaves nothing") {
  SECTION("at its first look") {
    const auto c = wait();
    c.cancel();
    CHECK(c.failed_with(detail::cancelled()));
    answers(replies::string("1"));
  }
  SECTION("before the acknowledgement") {
    const auto c = wait();
    answers(replies::string("1"));
    c.cancel();
    CHECK(c.failed_with(detail::cancelled()));
  }
  SECTION("while it is parked") {
    const auto c = wait_and_listen();
    c.cancel();
    CHECK(c.failed_with(detail::cancelled()));
    c.cancel();
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(latch_fixture, "a drain ends every wait and refuses new ones, and counts go on") {
  const auto held = hold("m");
  const auto c = wait_and_listen();
  locks->drain(10s, [] {});
  CHECK(c.failed_with(errc::shutting_down));
  CHECK(wait().failed_with(errc::shutting_down));
  const auto counted = count_down();
  answers(replies::integers({0, 0}));
  CHECK(counted.succeeded());
  unlock(held);
  frees();
  advance(1ms);
  CHECK(count_down().failed_with(errc::shutting_down));
}

TEST_CASE_METHOD(latch_fixture, "a close ends every wait, and waits for the counts under way") {
  const auto c = wait_and_listen();
  const auto counted = count_down();
  const auto closed = close();
  CHECK(c.failed_with(errc::shutting_down));
  CHECK(wait().failed_with(errc::shutting_down));
  CHECK(closed.waits());
  answers(replies::integers({0, 0}));
  CHECK(counted.succeeded());
  CHECK(closed.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(latch_fixture, "an engine that ends answers nobody who waits, and touches nothing of theirs") {
  const auto c = wait_and_listen();
  const auto other = wait();
  locks.reset();
  CHECK(c.waits());
  CHECK(other.waits());
  c.cancel();
}

TEST_CASE_METHOD(latch_fixture, "a caller without permission to listen is told so") {
  const auto c = wait();
  answers(replies::string("1"));
  server.refuse(channel(), errc::no_permission);
  run();
  CHECK(c.failed_with(errc::no_permission));
  check_nothing_is_left();
}

TEST_CASE_METHOD(latch_fixture,
                 "the simulated server opens a latch after so many counts, and a second copy counts once") {
  play();
  const auto played = [this](const verb_call& c) {
    run();
    return c;
  };
  CHECK(played(try_set(2)).value());
  CHECK_FALSE(played(try_set(5)).value());
  const auto waiting = played(wait());
  CHECK(waiting.waits());
  CHECK(played(count_down()).succeeded());
  CHECK(waiting.waits());
  // The same command once more.
  CHECK(obey(server.last()).elements.at(0).integer == 1);
  CHECK(node.command({"GET", "a"}).text == "1");
  CHECK(played(count_down(7)).succeeded());
  CHECK(waiting.value());
}
