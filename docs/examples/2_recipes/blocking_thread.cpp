// SPDX-License-Identifier: BSL-1.0
// From plain threads: the client runs on a thread of its own, and std::future waits for it.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <thread>
#include <vector>
namespace asio = boost::asio;

/// Waits for one operation of the library. Not on the thread that runs the context: it would wait for itself.
template <class T>
T wait(asio::io_context& io, asio::awaitable<T> operation) {
  return asio::co_spawn(io, std::move(operation), asio::use_future).get();
}

int main(int argc, char** argv) {
  asio::io_context io;
  auto open = asio::make_work_guard(io);
  std::thread engine([&] { io.run(); });
  {
    holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost"}};
    long counter = 0;  // an ordinary variable: the lock is what guards it
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (int round = 0; round < 100; ++round) {
          auto lease = wait(io, redis.mutex("counter").lock());
          ++counter;
          wait(io, lease.unlock());
        }
      });
    for (auto& t : threads) t.join();
    std::cout << "counted to " << counter << '\n';
  }
  open.reset();  // run() returns when nothing is left to do
  engine.join();
}

// Output:
//   counted to 400
