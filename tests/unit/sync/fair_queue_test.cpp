// SPDX-License-Identifier: BSL-1.0
// A client whose waiters stand in the queue of a fair mutex: its commands, the releases that take the lock for the next
// waiter, and what it leaves behind.
#include "protocol/fair/fair_lock.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

const asking in_order{{}, {}, &detail::fair_lock};

struct fair_queue : engine_fixture {
  static constexpr auto* other = "11111111-0000-8000-8000-000000000000:1000000000";

  void is_busy(milliseconds ttl = 30s) { answers(replies::integers({0, ttl.count()})); }
  void is_turn_of_other() {
    answers(replies::array({replies::integer(0), replies::integer(-2), replies::string(other)}));
  }
  void gets() { answers(replies::integers({1, 0})); }
  void gets_by(int number) {
    answers(replies::array({replies::integer(1), replies::integer(0), replies::string(place(number))}));
  }
  /// A stand: the lock's TTL, -2 if it is free, and how many stand.
  void stands(long long ttl, int places) { answers(replies::integers({ttl, places})); }
  void rides_by(int number) {
    answers(replies::array({replies::integer(2), replies::string(place(number)), replies::integer(0)}));
  }
  void freed_for(const std::string& head) {
    answers(replies::array({replies::integer(1), replies::string(head), replies::integer(1)}));
  }
  std::string place(int number) const { return uuid + ":" + std::to_string(1'000'000'000 + number); }
  std::string channel_of(int number) const {
    return detail::fair_steps::channel_of_place(*names, detail::place_field(client, static_cast<std::uint8_t>(number)));
  }
  void listens(int number) {
    server.acknowledge(channel_of(number));
    run();
  }
  void is_called(int number) {
    server.push(channel_of(number), "0");
    run();
  }
  std::string script() const { return last_sent().substr(0, last_sent().find('(')); }
  /// The last command without its keys.
  std::string wishes() const {
    const auto all = last_sent();
    return script() + all.substr(all.find(';'));
  }

  lock_call held() {
    const auto first = lock("a", in_order);
    gets();
    REQUIRE(first.granted());
    return first;
  }
  /// A waiter of a lock that another client holds.
  lock_call stands_alone() {
    const auto waiting = lock("a", in_order);
    is_busy();
    listens(0);
    stands(30'000, 1);
    return waiting;
  }
  /// A hold, and a waiter behind it that stands.
  std::pair<lock_call, lock_call> held_and_awaited() {
    const auto first = held(), next = lock("a", in_order);
    listens(0);
    stands(30'000, 1);
    return {first, next};
  }
  void await_attempt() {
    const auto before = sent("fair_acquire");
    for (int n = 0; n < 40 && sent("fair_acquire") == before; ++n) advance(10ms);
    REQUIRE(sent("fair_acquire") == before + 1);
  }
  void check_nobody_stands() {
    advance(2s);
    CHECK(locks->idle());
    CHECK(timers.idle());
    CHECK(server.open().empty());
    for (int number = 0; number < 4; ++number) CHECK(server.subscribers(channel_of(number)) == 0);
  }

  const detail::shared_keys names = keys("a", detail::fair_lock);
  const detail::uuid client{0, 0};
};

}  // namespace

TEST_CASE_METHOD(fair_queue, "a waiter asks once, listens on the channel of its place, and then stands in the queue") {
  const auto waiting = lock("a", in_order);
  CHECK(last_sent() == "fair_acquire(a, redisson_lock_queue:{a}, redisson_lock_timeout:{a}; 30000, #1, publish)");
  is_busy();
  CHECK(server.subscribers(channel_of(0)) == 1);
  CHECK(sent("fair_stand") == 0);
  listens(0);
  CHECK(wishes() == "fair_stand; publish, " + uuid + ", 1000000000)");
  stands(30'000, 1);
  CHECK(waiting.waits());
  is_called(0);
  CHECK(wishes() == "fair_acquire; 30000, #1, publish)");
  gets_by(0);
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(fair_queue, "a lock that is free for the only one who stands is asked for at once") {
  const auto waiting = lock("a", in_order);
  is_busy();
  listens(0);
  stands(-2, 1);
  CHECK(script() == "fair_acquire");
  gets_by(0);
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(fair_queue, "all places are shown again within 500 ms, and no attempt is sent") {
  const auto waiting = stands_alone();
  const auto before = server.count();
  advance(500ms);
  CHECK(server.count() == before + 1);
  CHECK(script() == "fair_stand");
  stands(30'000, 1);
  waiting.cancel();
}

TEST_CASE_METHOD(fair_queue, "a place that could not be shown is shown again within 20 ms, and then within 60 ms") {
  const auto waiting = lock("a", in_order);
  is_busy();
  listens(0);
  for (const auto within : {20ms, 60ms}) {
    const auto before = sent("fair_stand");
    fails(errc::unreachable);
    CHECK(sent("fair_stand") == before);
    advance(within);
    CHECK(sent("fair_stand") == before + 1);
  }
  stands(30'000, 1);
  waiting.cancel();
}

TEST_CASE_METHOD(fair_queue, "a lock whose holder ends without a word is asked for when its TTL is over") {
  const auto waiting = lock("a", in_order);
  is_busy();
  listens(0);
  stands(100, 1);
  const auto before = sent("fair_acquire");
  advance(102ms);
  CHECK(sent("fair_acquire") == before + 1);
  waiting.cancel();
}

TEST_CASE_METHOD(fair_queue,
                 "an unlock takes the lock for the next waiter of its client, and no other command follows") {
  const auto [first, next] = held_and_awaited();
  unlock(first);
  CHECK(wishes() == "fair_release; publish, #1, #2, 30000)");
  const auto before = server.count();
  rides_by(0);
  CHECK(next.granted());
  CHECK(server.count() == before);
}

TEST_CASE_METHOD(fair_queue,
                 "an unlock in the turn of another client lets the waiter suspect it, if it does not come") {
  const auto [first, next] = held_and_awaited();
  unlock(first);
  freed_for(other);
  CHECK(next.waits());
  const auto before = sent("fair_acquire");
  advance(300ms - 1ns);
  CHECK(sent("fair_acquire") == before);
  advance(100ms);
  CHECK(sent("fair_acquire") == before + 1);
  CHECK(wishes() == std::string("fair_acquire; 30000, #2, publish, ") + other + ")");
  SECTION("it has come") {
    is_busy();
    CHECK(next.waits());
    next.cancel();
  }
  SECTION("it was dropped") {
    gets_by(0);
    CHECK(next.granted());
  }
  SECTION("it is told again") {
    is_turn_of_other();
    advance(400ms);
    CHECK(wishes() == std::string("fair_acquire; 30000, #2, publish, ") + other + ")");
    next.cancel();
  }
}

TEST_CASE_METHOD(fair_queue, "a place that was told in an earlier turn is not suspected in a later one") {
  const auto [first, next] = held_and_awaited();
  unlock(first);
  freed_for(other);
  advance(400ms);
  is_busy();
  stands(30'000, 2);
  // The other client has held the lock since, and stands again perhaps, in another position.
  const auto looks = sent("fair_stand");
  advance(500ms);
  REQUIRE(sent("fair_stand") == looks + 1);
  stands(-2, 2);
  await_attempt();
  CHECK(wishes() == "fair_acquire; 30000, #2, publish)");
  is_turn_of_other();
  await_attempt();
  CHECK(wishes() == std::string("fair_acquire; 30000, #2, publish, ") + other + ")");
  next.cancel();
}

TEST_CASE_METHOD(fair_queue, "a waiter that is called suspects nobody") {
  const auto [first, next] = held_and_awaited();
  unlock(first);
  freed_for(other);
  is_called(0);
  CHECK(wishes() == "fair_acquire; 30000, #2, publish)");
  gets_by(0);
  CHECK(next.granted());
}

TEST_CASE_METHOD(fair_queue, "a waiter that leaves while a release takes the lock for it gives it back") {
  const auto [first, next] = held_and_awaited();
  unlock(first);
  next.cancel();
  run();
  CHECK(next.failed_with(asio::error::operation_aborted));
  CHECK(sent("fair_release") == 2);
  SECTION("it runs before the release of its field") {
    rides_by(0);
    freed_for("");
    not_yours();
  }
  SECTION("it runs after the release of its field, because the topology has repeated it") {
    server.reply(server.open()[1], replies::nil());
    run();
    rides_by(0);
    CHECK(wishes() == "fair_release; publish, #2)");
    freed_for("");
  }
  CHECK(sent("fair_release") == 3);
  while (!server.open().empty()) stands(-2, 0);
  check_nobody_stands();
}

TEST_CASE_METHOD(fair_queue, "places that Redis does not let leave are left to their end") {
  const auto waiting = stands_alone();
  advance(500ms);
  REQUIRE(script() == "fair_stand");
  for (int command = 0; command < 2; ++command) errs("NOPERM this user has no permissions to run the 'zadd' command");
  CHECK(waiting.failed_with(errc::no_permission));
  const auto before = server.count();
  check_nobody_stands();
  CHECK(server.count() == before);
}

TEST_CASE_METHOD(fair_queue, "a waiter that was called, and finds another holder, is shown at once") {
  const auto waiting = stands_alone();
  is_called(0);
  is_busy();
  CHECK(wishes() == "fair_stand; publish, " + uuid + ", 1000000000)");
  stands(30'000, 2);
  CHECK(waiting.waits());
  waiting.cancel();
}

TEST_CASE_METHOD(fair_queue, "a release that is repeated takes the lock only for a waiter that still waits") {
  const auto [first, next] = held_and_awaited();
  unlock(first);
  const bool leaves = GENERATE(true, false);
  if (leaves) next.cancel();
  fails(errc::unconfirmed);
  advance(0ms);
  if (leaves) {
    CHECK(sent("fair_release") == 3);
    CHECK(wishes() == "fair_release; publish, #1)");
  } else {
    CHECK(wishes() == "fair_release; publish, #1, #2, 30000)");
    rides_by(0);
    CHECK(next.granted());
  }
}

TEST_CASE_METHOD(fair_queue, "a waiter whose release found nothing asks under the same field") {
  const auto [first, next] = held_and_awaited();
  unlock(first);
  not_yours();
  CHECK(wishes() == "fair_acquire; 30000, #2, publish)");
  gets();
  CHECK(next.granted());
}

TEST_CASE_METHOD(fair_queue, "the last waiter that leaves takes all places along") {
  const auto waiting = stands_alone();
  waiting.cancel();
  run();
  CHECK(wishes() == "fair_stand; publish, " + uuid + ")");
  SECTION("at once") { stands(30'000, 0); }
  SECTION("although the first answer is lost") {
    fails(errc::unconfirmed);
    advance(0ms);
    CHECK(wishes() == "fair_stand; publish, " + uuid + ")");
    stands(30'000, 0);
  }
  check_nobody_stands();
}

TEST_CASE_METHOD(fair_queue, "a waiter that leaves while its place is being shown takes it along afterwards") {
  const auto waiting = lock("a", in_order);
  is_busy();
  listens(0);
  waiting.cancel();
  run();
  CHECK(sent("fair_stand") == 1);
  stands(30'000, 1);
  CHECK(sent("fair_stand") == 2);
  CHECK(wishes() == "fair_stand; publish, " + uuid + ")");
  stands(30'000, 0);
  check_nobody_stands();
}

TEST_CASE_METHOD(fair_queue, "a client that closes leaves no place") {
  const auto waiting = stands_alone();
  const auto closed = close();
  CHECK(waiting.failed_with(errc::shutting_down));
  CHECK(wishes() == "fair_stand; publish, " + uuid + ")");
  CHECK(closed.waits());
  stands(30'000, 0);
  CHECK(closed.succeeded());
}

TEST_CASE_METHOD(fair_queue, "a newcomer does not get the position of a waiter that has left") {
  const auto one = stands_alone();
  const auto two = lock("a", in_order);
  listens(1);
  stands(30'000, 2);
  one.cancel();
  run();
  CHECK(wishes() == "fair_stand; publish, " + uuid + ", 1000000001)");
  const auto three = lock("a", in_order);
  listens(2);
  stands(30'000, 1);
  CHECK(sent("fair_stand") == 4);
  CHECK(wishes() == "fair_stand; publish, " + uuid + ", 1000000001, 1000000002)");
}

TEST_CASE_METHOD(fair_queue, "a next caller within 100 ms stands at once, if others were there") {
  const auto waiting = stands_alone();
  is_called(0);
  gets_by(0);
  unlock(waiting);
  freed_for(other);
  const auto before = sent("fair_acquire");
  const auto next = lock("a", in_order);
  CHECK(sent("fair_acquire") == before);
  CHECK(wishes() == "fair_stand; publish, " + uuid + ", 1000000000)");
  stands(30'000, 2);
  is_called(0);
  gets_by(0);
  CHECK(next.granted());
}

TEST_CASE_METHOD(fair_queue, "a call while this client holds the lock lets it confirm the hold") {
  const auto [first, next] = held_and_awaited();
  is_called(0);
  advance(20ms);
  CHECK(script() == "renew");
  confirms_nothing();
  CHECK(state(first) == lease_state::lost);
  CHECK(script() == "fair_acquire");
  next.cancel();
}

TEST_CASE_METHOD(fair_queue, "a try_lock stands nowhere") {
  const auto tried = try_lock("a", in_order);
  is_busy();
  CHECK(tried.refused());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fair_queue, "a server that refuses the place is an answer for the waiter") {
  const auto waiting = lock("a", in_order);
  is_busy();
  listens(0);
  errs("NOPERM this user has no permissions to run the 'zadd' command");
  CHECK(waiting.failed_with(errc::no_permission));
}
