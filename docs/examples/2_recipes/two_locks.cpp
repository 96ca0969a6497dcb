// SPDX-License-Identifier: BSL-1.0
// Two locks at once: always in one order, or two tasks wait for each other for ever. Here that of the names.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <map>
namespace asio = boost::asio;

using accounts = std::map<std::string, int>;

asio::awaitable<void> transfer(holdfast::client& redis, accounts& all, std::string from, std::string to, int amount) {
  const auto& [low, high] = std::minmax(from, to);
  auto first = co_await redis.mutex("account:" + low).lock();
  auto second = co_await redis.mutex("account:" + high).lock();  // from == to: the same owner re-enters
  all[from] -= amount;
  all[to] += amount;
  co_await second.unlock();  // each throws lost if its lock was lost meanwhile: then check, or undo
  co_await first.unlock();
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io, {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  accounts all{{"ann", 100}, {"bob", 100}};
  auto start = [&](std::string from, std::string to) {
    holdfast::owner task;  // each transfer is a task of its own
    asio::co_spawn(task.bind(io.get_executor()), transfer(redis, all, from, to, 10), [](std::exception_ptr failed) {
      if (failed) std::rethrow_exception(failed);
    });
  };
  for (int i = 0; i < 20; ++i) {
    start("ann", "bob");
    start("bob", "ann");  // the other way round: without the order both would wait for ever
    start("ann", "ann");
  }
  io.run();
  std::cout << "ann " << all["ann"] << ", bob " << all["bob"] << '\n';
}

// Output:
//   ann 100, bob 100
