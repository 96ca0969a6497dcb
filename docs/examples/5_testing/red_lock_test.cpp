// SPDX-License-Identifier: BSL-1.0
// A job under a red_lock, tested with Catch2 and without Redis: servers die while it holds.
#define CATCH_CONFIG_MAIN
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing/primaries.hpp>
namespace asio = boost::asio;
using namespace std::chrono_literals;

/// The job: it does its work under the lock of the ledger.
template <class Work>
asio::awaitable<void> close_ledger(holdfast::client& redis, Work& work) {
  auto mutex = redis.red_lock("ledger");
  auto body = [&](holdfast::lease&) -> asio::awaitable<void> { return work(); };
  co_await holdfast::with_lock(mutex, body);
}

struct a_job_of_five_servers {
  a_job_of_five_servers() {
    five.run(holdfast::red_lock::initialise(redis));  // a new installation
    asio::co_spawn(io, close_ledger(redis, an_hour),
                   [this](std::exception_ptr failed) { failed ? ++cancelled : ++done; });
    five.advance(1min);
  }

  asio::io_context io;
  holdfast::testing::primaries five{io, 5};
  holdfast::client redis = five.make_client();
  std::function<asio::awaitable<void>()> an_hour = [this] { return five.sleep_for(1h); };
  int done = 0, cancelled = 0;
};

TEST_CASE_METHOD(a_job_of_five_servers, "a job is done though two of five servers die in the middle") {
  five[0].shut_down();
  five[1].stop_answering();
  five.advance(1h);
  CHECK(done == 1);
}

TEST_CASE_METHOD(a_job_of_five_servers, "a job is cancelled when three of five servers die in the middle") {
  for (int n : {0, 1, 2}) five[n].shut_down();
  five.advance(30s);  // the TTL
  CHECK(cancelled == 1);
}

TEST_CASE_METHOD(a_job_of_five_servers, "a job is cancelled when three of five servers restart empty") {
  for (int n : {0, 1, 2}) five[n].restart_empty();
  five.advance(10s);  // the next renewal
  CHECK(cancelled == 1);
}
