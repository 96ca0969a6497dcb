// SPDX-License-Identifier: BSL-1.0
// What the library promises its callers, where only virtual time shows whether it keeps it.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing/primaries.hpp>
#include <holdfast/testing/server.hpp>

#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include "support/catch.hpp"
#include "testing/code_of.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

/// What a body throws of its own.
struct own_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A body that is cancelled from outside, and how its caller finds the lock when the call has ended.
struct cancelled_body {
  cancelled_body() {
    server.run(redis.connect());
    server.link_of(redis).set_latency(20ms);
  }

  /// For with_lock() and try_lock_for(): of one lock, one of several, or all of several.
  template <class Call>
  void begin(Call call) {
    auto ended = [this](std::exception_ptr thrown, auto...) {
      failure = std::move(thrown);
      locks_at_end = server.locks().size();
    };
    asio::co_spawn(io, call(), asio::bind_cancellation_slot(stop.slot(), ended));
    server.advance(1s);
    REQUIRE_FALSE(server.locks().empty());
    REQUIRE_FALSE(locks_at_end);
    stop.emit(asio::cancellation_type::terminal);
    server.advance(1s);
    REQUIRE(locks_at_end);
    CHECK(server.locks().empty());
  }
  asio::awaitable<void> wait_and_throw(bool of_its_own) {
    try {
      co_await server.sleep_for(1h);
    } catch (const boost::system::system_error&) {
      if (of_its_own) throw own_failure("rolled back");
      throw;
    }
  }

  asio::io_context io;
  testing::server server{io};
  client redis = server.make_client();
  asio::cancellation_signal stop;
  std::exception_ptr failure;
  std::optional<std::size_t> locks_at_end;
};

}  // namespace

TEST_CASE_METHOD(cancelled_body, "a cancelled body that throws an error of its own is told when the key is free") {
  const bool of_its_own = GENERATE(true, false);
  const mutex m = redis.mutex("m"), n = redis.mutex("n");
  const auto one = [this, of_its_own](lease&) { return wait_and_throw(of_its_own); };
  const auto all = [this, of_its_own](multi_lease&) { return wait_and_throw(of_its_own); };
  SECTION("with_lock") {
    begin([&] { return with_lock(m, one); });
  }
  SECTION("with_lock of any_of") {
    begin([&] { return with_lock(any_of({m, n}), one); });
  }
  SECTION("with_lock of multi_lock") {
    begin([&] { return with_lock(multi_lock({m, n}), all); });
  }
  SECTION("try_with_lock_for") {
    begin([&] { return try_with_lock_for(m, 1s, one); });
  }
  if (of_its_own) {
    CHECK_THROWS_AS(std::rethrow_exception(failure), own_failure);
    CHECK(locks_at_end == 0U);
  } else {
    CHECK_THROWS_AS(std::rethrow_exception(failure), boost::system::system_error);
    CHECK(locks_at_end > 0U);  // it is freed in the background
  }
}

TEST_CASE("multi_lock: a bounded wait ends at its deadline, also where the last thing that it waits for is a renewal") {
  const bool silent = GENERATE(true, false);
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  const multi_lock both({redis.mutex("m"), redis.simple_mutex("s")});
  const lock_options not_renewed{.ttl = 10s};
  server.run(server.run(both.lock(not_renewed)).unlock());  // the server knows the scripts
  server.link_of(redis).set_latency(20ms);
  bool ended = false, had = false;
  error_code failed;
  asio::co_spawn(io, as_result(both.try_lock_for(100ms, not_renewed)),
                 [&](std::exception_ptr, result<std::optional<multi_lease>> got) {
                   ended = true;
                   had = got && *got;
                   if (!got) failed = got.error();
                 });
  server.advance(90ms);  // it has both, and waits for the confirmation
  CHECK(server.locks().size() == 2);
  if (silent) server.stop_answering();
  server.advance(9ms);
  CHECK_FALSE(ended);
  server.advance(1ms);
  CHECK(ended);
  CHECK_FALSE(had);
  if (silent) CHECK(failed == errc::unreachable);
  server.answer_again();
  server.advance(1s);
  CHECK(server.locks().empty());
}

TEST_CASE("multi_lock of two servers: what is lost at one while the other is waited for is taken anew") {
  int waited_for_the_later = 0;
  for (const std::size_t later : {0U, 1U}) {  // the order of the servers is their own
    const std::size_t first = 1 - later;
    asio::io_context io;
    testing::primaries servers(io, 3);
    auto a = servers[0].make_client(), b = servers[1].make_client();
    servers[later].take_over("m", 1h);
    std::optional<multi_lease> got;
    asio::co_spawn(io, multi_lock({a.mutex("m"), b.mutex("m")}).lock(),
                   [&got](std::exception_ptr, multi_lease l) { got = std::move(l); });
    servers.run_until_idle();
    if (servers[first].holder("m")) {
      ++waited_for_the_later;
      servers[first].take_over("m", 5s);
      servers.advance(20s);  // a renewal has found the loss
      CHECK_FALSE(servers[first].holder("m"));
    }
    CHECK_FALSE(got);
    servers[later].give_back("m");
    servers.advance(1s);
    REQUIRE(got);
    CHECK(got->held());
    for (auto* server : {&servers[first], &servers[later]}) CHECK(server->holder("m"));
    servers.run(got->unlock());
  }
  CHECK(waited_for_the_later == 1);
}

TEST_CASE("multi_lock takes a permit last, keeps what it has while it waits for one, and is lost with it") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client(), other = server.make_client();
  const auto elsewhere = other.expirable_semaphore("pool", 1);
  const multi_lock both({redis.expirable_semaphore("pool", 1).as_mutex(), redis.mutex("m")});
  auto busy = server.run(elsewhere.acquire());
  CHECK_FALSE(server.run(both.try_lock()));
  server.run_until_idle();
  CHECK(server.locks().empty());
  std::optional<bool> had;
  asio::co_spawn(io, both.try_lock_for(100ms),
                 [&](std::exception_ptr, const std::optional<multi_lease>& got) { had = got.has_value(); });
  server.advance(99ms);
  CHECK(server.holder("m"));
  CHECK_FALSE(had);
  server.advance(1ms);
  CHECK(had == false);
  server.run_until_idle();
  CHECK(server.locks().empty());
  std::optional<multi_lease> got;
  asio::co_spawn(io, both.lock(), [&](std::exception_ptr, multi_lease all) { got = std::move(all); });
  server.advance(1min);
  CHECK(server.holder("m"));
  CHECK_FALSE(got);
  server.run(busy.unlock());
  server.run_until_idle();
  REQUIRE(got);
  CHECK((*got)[0].name() == "pool");
  CHECK((*got)[1].name() == "m");
  server.advance(1h);
  CHECK(got->held());
  CHECK(server.run(elsewhere.force_release()) == 1);
  server.advance(20s);
  CHECK(got->state() == lease_state::lost);
  CHECK(test::code_of([&] { server.run(got->unlock()); }) == errc::lost);
  CHECK(server.locks().empty());
}

TEST_CASE("a multi_lock that is cancelled while it waits for a permit leaves nothing") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client(), other = server.make_client();
  const auto elsewhere = other.expirable_semaphore("pool", 1);
  const multi_lock both({redis.expirable_semaphore("pool", 1).as_mutex(), redis.mutex("m")});
  auto busy = server.run(elsewhere.acquire());
  asio::cancellation_signal stop;
  std::exception_ptr failure;
  const auto ended = [&](std::exception_ptr thrown, const multi_lease&) { failure = std::move(thrown); };
  asio::co_spawn(io, both.lock(), asio::bind_cancellation_slot(stop.slot(), ended));
  server.advance(1s);
  CHECK(server.holder("m"));
  stop.emit(asio::cancellation_type::terminal);
  server.run_until_idle();
  CHECK(failure);
  CHECK(server.locks().empty());
  server.run(busy.unlock());
  CHECK(server.run(elsewhere.available()) == 1);
}
