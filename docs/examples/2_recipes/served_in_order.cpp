// SPDX-License-Identifier: BSL-1.0
// A box office sells seats to whoever came first. Buyers come to three machines, and are served in the order in which
// they came, whatever machine it was. While the box office is closed, they stand in one queue in Redis.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <vector>
namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr unsigned buyers = 9;

void rethrow(std::exception_ptr failed) {
  if (failed) std::rethrow_exception(failed);
}

asio::awaitable<void> buy(holdfast::client& machine, unsigned buyer, std::vector<unsigned>& served) {
  auto box_office = machine.fair_mutex("seats:friday");
  auto lease = co_await box_office.lock();
  served.push_back(buyer);
  co_await lease.unlock();
}

asio::awaitable<void> open_sale(std::vector<holdfast::client>& machines, std::vector<unsigned>& served) {
  auto box_office = machines[0].fair_mutex("seats:friday");
  auto closed = co_await box_office.lock();
  asio::steady_timer moment(co_await asio::this_coro::executor);
  for (unsigned buyer = 1; buyer <= buyers; ++buyer) {
    asio::co_spawn(moment.get_executor(), buy(machines[buyer % 3], buyer, served), rethrow);
    while (co_await box_office.waiters() < buyer) {  // until this buyer stands in the queue
      moment.expires_after(1ms);
      co_await moment.async_wait(asio::use_awaitable);
    }
  }
  co_await closed.unlock();
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  asio::io_context io;
  std::vector<holdfast::client> machines;
  for (int n = 0; n < 3; ++n) machines.emplace_back(io, holdfast::config{.url = url});
  std::vector<unsigned> served;
  asio::co_spawn(io, open_sale(machines, served), rethrow);
  io.run();
  std::cout << "served:";
  for (const auto buyer : served) std::cout << ' ' << buyer;
  std::cout << '\n';
}

// Output:
//   served: 1 2 3 4 5 6 7 8 9
