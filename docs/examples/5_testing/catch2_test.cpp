// SPDX-License-Identifier: BSL-1.0
// The shop of 2_recipes/http_server.cpp, tested with Catch2 and without Redis: it ships, is busy, loses its lock in the
// middle, and does not reach Redis.
#define CATCH_CONFIG_MAIN
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <holdfast/testing/server.hpp>

#include "../2_recipes/shop.hpp"
namespace asio = boost::asio;
using namespace std::chrono_literals;

struct shop_of_a_test {
  /// A request comes, and does what it can do at once.
  void ask() {
    asio::co_spawn(task.bind(io.get_executor()), under_test.ship("42"),
                   [this](std::exception_ptr, shop::answer a) { status = a.status; });
    server.run_until_idle();
  }

  asio::io_context io;
  holdfast::testing::server server{io};
  holdfast::client redis = server.make_client({.key_prefix = "shop:"});
  shop under_test{redis};
  holdfast::owner task;
  unsigned status = 0;
};

TEST_CASE_METHOD(shop_of_a_test, "an order whose lock is lost in the middle is not shipped") {
  ask();
  REQUIRE(server.holder("shop:42"));
  server.lose("shop:42");
  server.advance(10s);  // the next renewal finds it out, and cancels the work
  CHECK(status == 500);
}

TEST_CASE_METHOD(shop_of_a_test, "an order that is at work elsewhere is busy") {
  server.take_over("shop:42");
  ask();
  CHECK(status == 0);
  server.advance(200ms);
  CHECK(status == 409);
}

TEST_CASE_METHOD(shop_of_a_test, "an order is refused while Redis does not answer") {
  server.stop_answering();
  ask();
  server.advance(700ms);
  CHECK(status == 503);
}

TEST_CASE_METHOD(shop_of_a_test, "a request leaves no lock behind, however it ends") {
  ask();
  server.link_of(redis).cut();
  server.advance(1min);
  CHECK(status == 500);
  server.check();  // would name the lock, and the lease that holds it
}
