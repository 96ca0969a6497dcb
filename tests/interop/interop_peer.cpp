// SPDX-License-Identifier: BSL-1.0
// interop_peer ROUNDS: starts a private server, says where it is, and adds ROUNDS to a counter there, each time under
// the simple_mutex "shared". At the end of its input it prints the counter. Exit status 77: there is no Redis server.
#include <holdfast/holdfast.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "support/raw_client.hpp"
#include "support/real_redis.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// Who else is inside would be seen: nothing but the lock protects the counter.
asio::awaitable<void> add_under_lock(holdfast::simple_mutex mutex, holdfast::test::raw_client& data, int rounds) {
  asio::steady_timer inside(co_await asio::this_coro::executor);
  for (; rounds > 0; --rounds) {
    auto held = co_await mutex.lock({.ttl = 5s});
    const auto before = std::stoll(data("GET", "counter").to_string());
    inside.expires_after(1ms);
    co_await inside.async_wait(asio::use_awaitable);
    data("SET", "counter", before + 1);
    co_await held.unlock();
  }
}

}  // namespace

int main(int, char** argv) {
  using holdfast::test::real_redis;
  if (!real_redis::available()) {
    std::cout << "no Redis server\n";
    return 77;
  }
  const real_redis server;
  holdfast::test::raw_client data(server);
  data("SET", "counter", 0);
  std::cout << server.socket_path() << std::endl;
  asio::io_context io;
  holdfast::client redis(io, {.url = server.url()});
  asio::co_spawn(io, add_under_lock(redis.simple_mutex("shared"), data, std::atoi(argv[1])),
                 [](std::exception_ptr failed) {
                   if (failed) std::rethrow_exception(failed);
                 });
  io.run();
  for (std::string line; std::getline(std::cin, line);) {
  }
  std::cout << data("GET", "counter") << '\n';
}
