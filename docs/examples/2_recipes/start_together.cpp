// SPDX-License-Identifier: BSL-1.0
// Workers of several machines start together: nobody begins before all have loaded their data. One program sets a
// latch. Each worker arrives there, and the last one opens it. A new release takes a new name, because a latch opens
// once.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr unsigned workers = 4;

struct fleet {  // what an onlooker sees
  unsigned loaded = 0, started = 0, started_early = 0;
};

asio::awaitable<void> deploy(holdfast::client& machine) {
  auto all_loaded = machine.latch("loaded:v42");
  co_await all_loaded.try_set(workers);
}

asio::awaitable<void> work(holdfast::client& machine, fleet& seen, unsigned number) {
  auto all_loaded = machine.latch("loaded:v42");
  asio::steady_timer load(co_await asio::this_coro::executor, 5ms * number);
  co_await load.async_wait(asio::use_awaitable);
  ++seen.loaded;
  co_await all_loaded.arrive_and_wait();
  if (seen.loaded < workers) ++seen.started_early;
  ++seen.started;
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  asio::io_context io;
  holdfast::client machines[] = {holdfast::client{io, {.url = url}}, holdfast::client{io, {.url = url}}};
  fleet seen;
  auto rethrow = [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  };
  asio::co_spawn(io, deploy(machines[0]), rethrow);
  io.run();
  io.restart();
  for (unsigned number = 0; number < workers; ++number)
    asio::co_spawn(io, work(machines[number % 2], seen, number), rethrow);
  io.run();
  std::cout << seen.started << " workers started, " << seen.started_early << " before all had loaded\n";
}

// Output:
//   4 workers started, 0 before all had loaded
