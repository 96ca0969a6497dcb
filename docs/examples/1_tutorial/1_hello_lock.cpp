// SPDX-License-Identifier: BSL-1.0
// A lock around a piece of work. What charge() locks, ship() holds already: the same task re-enters.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;

asio::awaitable<void> charge(holdfast::client& redis, std::string order) {
  auto mutex = redis.mutex("orders:" + order);
  auto lease = co_await mutex.lock();  // the same task owns it already: re-entry, not deadlock
  std::cout << "charged " << order << '\n';
  co_await lease.unlock();
}

asio::awaitable<void> ship(holdfast::client& redis, std::string order) {
  auto mutex = redis.mutex("orders:" + order);
  auto lease = co_await mutex.lock();  // waits its turn; renewed every TTL/3 while it lives
  co_await charge(redis, order);
  std::cout << "shipped " << order << '\n';
  co_await lease.unlock();  // or let ~lease release it in the background
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io, {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  holdfast::owner task;  // one logical task = one owner
  asio::co_spawn(task.bind(io.get_executor()), ship(redis, "42"), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   charged 42
//   shipped 42
