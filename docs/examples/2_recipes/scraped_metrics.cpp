// SPDX-License-Identifier: BSL-1.0
// Numbers for Prometheus: holdfast::metrics is an observer that counts, and writes what a scrape of /metrics asks for.
// Here only what does not depend on the clock is printed.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/metrics.hpp>
#include <iostream>
#include <sstream>
namespace asio = boost::asio;

void print(const char* when, const holdfast::metrics& numbers) {
  std::stringstream text;
  numbers.write(text);  // into the body of the answer; Content-Type: text/plain; version=0.0.4
  std::cout << when << '\n';
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("holdfast_lock_held") ||
        (line.starts_with("holdfast_lock_lost_total") && !line.ends_with(" 0")))
      std::cout << "  " << line << '\n';
}

asio::awaitable<void> work(holdfast::client& redis, const holdfast::metrics& numbers) {
  holdfast::owner task;
  auto outer = co_await redis.mutex("orders:42", task).lock();
  auto inner = co_await redis.mutex("orders:42", task).lock();  // no hold of its own
  auto other = co_await redis.fenced_mutex("orders:7").lock();
  print("held twice by one owner, and another kind:", numbers);
  co_await redis.mutex("orders:42").force_unlock();
  co_await outer.lost();
  print("broken by force:", numbers);
  co_await redis.shutdown(std::chrono::seconds(1));
  print("after shutdown:", numbers);
}

int main(int argc, char** argv) {
  asio::io_context io;
  auto numbers = std::make_shared<holdfast::metrics>();
  holdfast::client redis{io, {.url = argc > 1 ? argv[1] : "redis://localhost", .observer = numbers}};
  asio::co_spawn(io, work(redis, *numbers), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   held twice by one owner, and another kind:
//     holdfast_lock_held{kind="mutex"} 1
//     holdfast_lock_held{kind="fenced_mutex"} 1
//   broken by force:
//     holdfast_lock_held{kind="mutex"} 0
//     holdfast_lock_held{kind="fenced_mutex"} 1
//     holdfast_lock_lost_total{kind="mutex",reason="forced"} 1
//   after shutdown:
//     holdfast_lock_held{kind="mutex"} 0
//     holdfast_lock_held{kind="fenced_mutex"} 0
//     holdfast_lock_lost_total{kind="mutex",reason="forced"} 1
