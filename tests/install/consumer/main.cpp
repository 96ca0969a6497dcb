// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>

namespace asio = boost::asio;

asio::awaitable<void> charge(holdfast::client& redis, std::string order) {
  auto mutex = redis.mutex("orders:" + order);
  auto lease = co_await mutex.lock();
  std::cout << "charged " << order << '\n';
  co_await lease.unlock();
}

asio::awaitable<void> ship(holdfast::client& redis, std::string order) {
  auto mutex = redis.mutex("orders:" + order);
  auto body = [&](holdfast::lease&) -> asio::awaitable<void> { co_await charge(redis, order); };
  co_await holdfast::with_lock(mutex, body);
}

// A URL that nobody can mean must end in our own exception, across the library's border.
int main(int argc, char** argv) try {
  asio::io_context io;
  holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  holdfast::owner task;
  asio::co_spawn(task.bind(io.get_executor()), ship(redis, "42"), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
  return 0;
} catch (const holdfast::error& e) {
  std::cout << "holdfast::error: " << e.what() << '\n';
  return 3;
}
