// SPDX-License-Identifier: BSL-1.0
// A cached value that many tasks read, and that one of them rebuilds. Readers stand beside each other. When the value
// has expired, all of them see that at once. The lock lets one write; the others find the new value.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using namespace std::chrono_literals;

struct price_cache {  // stands for a cache that all machines use
  int version = 0, rebuilt = 0, answers = 0, readers = 0, most_readers = 0;
  bool is_fresh() const { return version > 0; }
  asio::awaitable<void> read() {
    most_readers = std::max(most_readers, ++readers);
    asio::steady_timer transfer(co_await asio::this_coro::executor, 20ms);
    co_await transfer.async_wait(asio::use_awaitable);
    --readers;
    ++answers;
  }
  asio::awaitable<void> rebuild() {
    asio::steady_timer query(co_await asio::this_coro::executor, 50ms);
    co_await query.async_wait(asio::use_awaitable);
    version = ++rebuilt;
  }
};

asio::awaitable<void> look_up(holdfast::client& machine, price_cache& prices) {
  auto guard = machine.shared_mutex("prices");
  for (;;) {
    auto reading = co_await guard.lock_shared();
    if (prices.is_fresh()) co_return co_await prices.read();  // the end of the lease releases it
    co_await reading.unlock();                                // a reader cannot become a writer
    auto writing = co_await guard.lock();
    if (prices.is_fresh()) continue;  // another task rebuilt it while this one waited
    co_await prices.rebuild();
    co_await guard.downgrade(writing);  // all may read now, and nobody has written in between
    co_return co_await prices.read();
  }
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  asio::io_context io;
  holdfast::client machines[] = {holdfast::client{io, {.url = url}}, holdfast::client{io, {.url = url}}};
  price_cache prices;
  auto rethrow = [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  };
  for (int task = 0; task < 40; ++task) asio::co_spawn(io, look_up(machines[task % 2], prices), rethrow);
  io.run();
  std::cout << prices.answers << " answers, " << prices.rebuilt << " rebuild\n";
  if (prices.most_readers < 2) std::cout << "nobody read beside another\n";
}

// Output:
//   40 answers, 1 rebuild
