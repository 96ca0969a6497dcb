// SPDX-License-Identifier: BSL-1.0
// At most three downloads at once, over all machines. Each download takes a permit of one semaphore. A big one takes
// two, which come together. A machine that dies gives its permits back: each of them is a lease.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using namespace std::chrono_literals;

struct mirror {  // stands for the server that allows three connections
  unsigned connections = 0, most = 0, files = 0;

  asio::awaitable<void> fetch(unsigned parts) {
    connections += parts;
    most = std::max(most, connections);
    asio::steady_timer transfer(co_await asio::this_coro::executor, 5ms);
    co_await transfer.async_wait(asio::use_awaitable);
    connections -= parts;
    ++files;
  }
};

asio::awaitable<void> download(holdfast::client& machine, mirror& from, unsigned parts) {
  auto permits = machine.expirable_semaphore("downloads", 3);
  auto lease = co_await permits.acquire(parts);
  co_await from.fetch(parts);
  co_await lease.unlock();
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  asio::io_context io;
  holdfast::client machines[] = {holdfast::client{io, {.url = url}}, holdfast::client{io, {.url = url}}};
  mirror files;
  auto rethrow = [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  };
  for (int file = 0; file < 40; ++file)
    asio::co_spawn(io, download(machines[file % 2], files, file % 10 == 0 ? 2 : 1), rethrow);
  io.run();
  std::cout << files.files << " files, at most " << files.most << " connections at once\n";
}

// Output:
//   40 files, at most 3 connections at once
