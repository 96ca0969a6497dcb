// SPDX-License-Identifier: BSL-1.0
// The several servers of the test kit, as a user has them who tests red_locks.
#include <holdfast/testing/primaries.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>

#include <optional>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"
#include "testing/code_of.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::code_of;
using test::contains_text;

namespace {

/// Five servers that vote, and two clients of red_locks.
struct five_servers {
  five_servers() { five.run(red_lock::initialise(holders)); }

  red_lock lock_of(const client& whose) const { return whose.red_lock("N", nested); }
  lease take() { return five.run(lock_of(holders).lock()); }
  /// Somebody waits from now on.
  void wait() {
    asio::co_spawn(io, lock_of(others).lock(), [this](std::exception_ptr, lease got) { waited = std::move(got); });
    five.run_until_idle();
    REQUIRE_FALSE(waited);
  }

  const reentrancy nested = GENERATE(reentrancy::reentrant, reentrancy::not_reentrant);
  const testing::format as = nested == reentrancy::reentrant ? testing::format::hash : testing::format::string;
  asio::io_context io;
  testing::primaries five{io, 5};
  client holders = five.make_client(), others = five.make_client();
  std::optional<lease> waited;
};

}  // namespace

TEST_CASE_METHOD(five_servers,
                 "a red_lock of the kit is granted by each server, excludes, is handed over and released") {
  auto held = take();
  five.run_until_idle();
  for (std::size_t n = 0; n < five.size(); ++n) {
    REQUIRE(five[n].locks().size() == 1);
    CHECK(five[n].holder("N")->id == held.id());
  }
  CHECK_FALSE(five.run(lock_of(others).try_lock()));
  wait();
  five.advance(5min);
  CHECK(held.held());
  CHECK_FALSE(waited);
  const auto now = five.elapsed();
  five.run(held.unlock());
  five.run_until_idle();
  REQUIRE(waited);  // told by a message: no time has passed
  CHECK(five.elapsed() == now);
  five.run(waited->unlock());
  five.check();
  for (std::size_t n = 0; n < five.size(); ++n) CHECK(five[n].locks().empty());
}

TEST_CASE_METHOD(five_servers, "when two of five servers die while a red_lock is held, it is held on and excludes") {
  auto held = take();
  five[0].shut_down();
  five[3].stop_answering();
  five.advance(1h);
  CHECK(held.held());
  CHECK(held.valid_for() > 15s);
  CHECK_FALSE(five.run(lock_of(others).try_lock_for(1s)));
  five.run(held.unlock());
  const auto now = five.elapsed();
  auto next = five.run(lock_of(others).try_lock());
  REQUIRE(next);
  CHECK(five.elapsed() == now);  // nobody has waited for who does not answer
  five.run(next->unlock());
  five.check();
}

TEST_CASE_METHOD(five_servers,
                 "when three of five servers die while a red_lock is held, it is suspended and then lost") {
  auto held = take();
  five.advance(15s);
  for (const auto n : {0, 2, 4}) five[n].shut_down();
  five.advance(10s);
  CHECK(held.state() == lease_state::suspended);
  CHECK(held.held());
  CHECK(code_of([&] { five.run(lock_of(others).try_lock()); }) == errc::quorum_failed);
  five.advance(20s);
  CHECK(held.state() == lease_state::lost);
  CHECK(code_of([&] { five.run(held.unlock()); }) == errc::lost);
}

TEST_CASE_METHOD(five_servers,
                 "when servers come back with their data before the validity ends, the red_lock is held") {
  auto held = take();
  for (const auto n : {0, 2, 4}) five[n].shut_down();
  five.advance(15s);
  CHECK(held.state() == lease_state::suspended);
  for (const auto n : {0, 2, 4}) five[n].start();
  five.advance(10s);
  CHECK(held.state() == lease_state::held);
  five.run(held.unlock());
  five.check();
}

TEST_CASE_METHOD(five_servers, "a body under a red_lock is cancelled when the majority is gone") {
  bool ended = false;
  const auto body = [&](lease&) -> asio::awaitable<void> { co_await five.sleep_for(10h); };
  asio::co_spawn(io, with_lock(lock_of(holders), body), [&](std::exception_ptr failed) {
    ended = true;
    CHECK(code_of([&] { std::rethrow_exception(failed); }) == errc::lost);
  });
  five.advance(1min);
  CHECK_FALSE(ended);
  for (const auto n : {1, 2, 3}) five[n].lose("N");
  five.advance(10s);  // the next renewal
  CHECK(ended);
}

TEST_CASE_METHOD(five_servers, "what a minority loses or gives to another costs a red_lock nothing") {
  auto held = take();
  five.run_until_idle();
  five[0].lose("N");
  five[1].take_over("N", 1h, as);
  five.advance(1h);
  CHECK(held.held());
  five[2].step_clock(1min);  // its key ends early: that is the third of five
  five.advance(10s);
  CHECK(held.state() == lease_state::lost);
}

TEST_CASE_METHOD(five_servers, "a waiter for a red_lock that another client has at a majority is woken by its end") {
  for (const auto n : {0, 1, 2}) five[n].take_over("N", 1h, as);
  CHECK_FALSE(five.run(lock_of(holders).try_lock()));
  wait();
  five.advance(1min);
  CHECK_FALSE(waited);
  for (const auto n : {0, 1, 2}) five[n].give_back("N");
  five.advance(1s);
  CHECK(waited);
}

TEST_CASE_METHOD(five_servers, "a primary that restarts empty has no vote before the longest TTL is over") {
  five[0].shut_down();
  five[1].shut_down();
  auto held = take();
  five[2].restart_empty();
  five.advance(11s);
  CHECK(held.state() == lease_state::lost);  // two have it
  const auto next = lock_of(others);
  CHECK(code_of([&] { five.run(next.try_lock_for(40s)); }) == errc::quorum_failed);
  CHECK(five.run(next.try_lock_for(30s)));  // 60 s after the restart: twice the TTL
}

TEST_CASE_METHOD(five_servers,
                 "a primary that restarts with its data renews what it has, and has no vote for new locks") {
  five[0].shut_down();
  five[1].shut_down();
  auto held = take();
  five[2].restart();
  five.advance(20s);
  CHECK(held.held());
  const auto another = others.red_lock("another", nested);
  CHECK(code_of([&] { five.run(another.try_lock_for(20s)); }) == errc::quorum_failed);
  CHECK(five.run(another.try_lock_for(1min)));
  CHECK(held.held());
}

TEST_CASE_METHOD(five_servers, "the links of one client fail one by one, and only its majority counts") {
  auto held = take();
  five[0].link_of(holders).cut();
  five[1].link_of(holders).fall_silent();
  five[2].link_of(holders).drop_next_reply();
  five.advance(1h);
  CHECK(held.held());
  five[2].link_of(holders).cut();
  five.advance(40s);
  CHECK(held.state() == lease_state::lost);
  auto next = five.run(lock_of(others).try_lock());
  CHECK(next);  // nobody has cut off the other client
  for (const auto n : {0, 1, 2}) five[n].link_of(holders).restore();
  five.run(next->unlock());
  CHECK(five.run(lock_of(holders).try_lock_for(1min)));
}

TEST_CASE_METHOD(five_servers, "a red_lock that a test forgets is named by check(), once") {
  auto held = take();
  CHECK_THROWS_WITH(five.check(), contains_text("1 lock is still held: 'N' by lease " + held.id()));
}

TEST_CASE("of 3, 5, 7 and 9 primaries 1, 2, 3 and 4 may be lost, and no more") {
  const std::size_t n = GENERATE(3, 5, 7, 9);
  asio::io_context io;
  testing::primaries all(io, n);
  auto redis = all.make_client();
  all.run(red_lock::initialise(redis));
  auto held = all.run(redis.red_lock("N").lock());
  for (std::size_t i = 0; i < n / 2; ++i) all[i].shut_down();
  all.advance(1min);
  CHECK(held.held());
  CHECK(all.run(redis.red_lock("another").try_lock()));
  all[n / 2].shut_down();
  all.advance(1min);
  CHECK(held.state() == lease_state::lost);
  CHECK(code_of([&] { all.run(redis.red_lock("another").try_lock()); }) == errc::quorum_failed);
}

TEST_CASE("without delayed_restart a primary that restarts empty votes at once, and may vote for a second holder") {
  asio::io_context io;
  testing::primaries three(io, 3);
  auto one = three.make_client({.red_lock = {.delayed_restart = false}}),
       other = three.make_client({.red_lock = {.delayed_restart = false}});
  auto held = three.run(one.red_lock("N").lock());  // no initialise() is needed, either
  three[0].shut_down();
  three[1].restart_empty();
  three[0].restart_empty();
  CHECK(held.held());  // until its next renewal
  CHECK(three.run(other.red_lock("N").try_lock()));
  three.advance(10s);
  CHECK(held.state() == lease_state::lost);
}

TEST_CASE("primaries of a new installation vote when the longest TTL is over, or at once by initialise()") {
  asio::io_context io;
  testing::primaries three(io, 3);
  auto redis = three.make_client({.ttl = 10s, .red_lock = {.longest_ttl = 20s}});
  SECTION("by time") {
    CHECK(code_of([&] { three.run(redis.red_lock("N").try_lock_for(15s)); }) == errc::quorum_failed);
    CHECK(three.run(redis.red_lock("N").try_lock_for(10s)));
  }
  SECTION("by an operator") {
    three.run(red_lock::initialise(redis));
    CHECK(three.run(redis.red_lock("N").try_lock()));
    CHECK(code_of([&] { three.run(red_lock::initialise(redis)); }) == errc::invalid_config);
    auto hasty = three.make_client({.ttl = 1s, .red_lock = {.longest_ttl = 2s}});
    CHECK(code_of([&] { (void)three.run(hasty.red_lock("N").lock()); }) == errc::invalid_config);
  }
}

TEST_CASE("connect() of a client of red_locks is content with a majority") {
  asio::io_context io;
  testing::primaries three(io, 3);
  auto redis = three.make_client();
  three.run(red_lock::initialise(redis));
  three[0].shut_down();
  three.run(redis.connect());
  three[1].stop_answering();
  auto late = three.make_client();
  CHECK(code_of([&] { three.run(late.connect()); }) == errc::quorum_failed);
}

TEST_CASE("a client of primaries has red_locks alone, and a client of one of them the other kinds") {
  asio::io_context io;
  testing::primaries three(io, 3);
  auto redis = three.make_client(), of_one = three[1].make_client();
  CHECK(code_of([&] { (void)three.run(redis.mutex("N").lock()); }) == errc::invalid_config);
  CHECK(code_of([&] { (void)three.run(of_one.red_lock("N").lock()); }) == errc::invalid_config);
  auto held = three.run(of_one.mutex("N").lock());
  CHECK(three[1].holder("N"));
  CHECK_FALSE(three[0].holder("N"));
  CHECK_NOTHROW(three[1].link_of(of_one));
  CHECK_THROWS_AS(three[0].link_of(of_one), std::invalid_argument);
  CHECK(three[2].held_lease("N").token());
}

TEST_CASE("the config of a client of primaries counts, and what does not fit is refused") {
  asio::io_context io, elsewhere;
  for (const std::size_t n : {0, 1, 2, 4, 8, 11})
    CHECK_THROWS_WITH((testing::primaries{io, n}), contains_text("not " + std::to_string(n)));
  testing::primaries three(io, 3);
  const std::vector<std::string> of_production = {"rediss://user:secret@a", "rediss://b:6380", "rediss://c"};
  auto redis = three.make_client({.key_prefix = "shop:", .ttl = 2s, .red_lock = {.primaries = of_production}});
  three.run(red_lock::initialise(redis));
  auto held = three.run(redis.red_lock("N").lock());
  CHECK(three[0].holder("shop:N")->ttl == 2s);
  const auto refused = [&](config c) { return code_of([&] { three.make_client(std::move(c)); }); };
  CHECK(refused({.red_lock = {.primaries = {"redis://a", "redis://b", "redis://a"}}}) == errc::invalid_config);
  CHECK(refused({.red_lock = {.primaries = {"redis://a", "redis://b", "redis+sentinel://c/d"}}}) ==
        errc::invalid_config);
  CHECK(refused({.red_lock = {.primaries = {"redis://a", "redis://b", "redis://c", "redis://d", "redis://e"}}}) ==
        errc::invalid_config);
  CHECK(refused({.ttl = 10s, .red_lock = {.longest_ttl = 5s}}) == errc::invalid_config);
  CHECK(refused({.url = "redis+cluster://a,b"}) == errc::invalid_config);
  CHECK_THROWS_AS(three.make_client(elsewhere.get_executor(), {}), std::invalid_argument);
}

TEST_CASE("primaries, client, lease and io_context end in any order") {
  const auto first = GENERATE(0, 1, 2, 3);
  std::optional<asio::io_context> io(std::in_place);
  std::optional<testing::primaries> three(std::in_place, *io, 3);
  std::optional<client> redis(three->make_client());
  three->run(red_lock::initialise(*redis));
  std::optional<lease> held(three->run(redis->red_lock("N").lock()));
  switch (first) {
    case 0: io.reset(); break;
    case 1:
      three.reset();
      CHECK_FALSE(held->held());
      break;
    case 2: redis.reset(); break;
    default: held.reset(); break;
  }
  if (io && three) three->check();
}

TEST_CASE("connecting to new servers of red_locks says what to do") {
  asio::io_context io;
  testing::primaries three(io, 3);
  auto redis = three.make_client();
  CHECK_THROWS_WITH(three.run(redis.connect()), contains_text("red_lock::initialise"));
  CHECK_THROWS_WITH(three.run(red_lock::initialise(redis)), contains_text("votes when the longest TTL is over"));
  three.advance(2 * config().ttl + 1s);
  CHECK_NOTHROW(three.run(redis.connect()));
}
