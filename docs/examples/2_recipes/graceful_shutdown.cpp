// SPDX-License-Identifier: BSL-1.0
// SIGTERM: drain() lets a request finish that holds a lock, refuses all others, and then does what shutdown() does.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> ship(holdfast::client& redis, asio::steady_timer& terminating) {
  auto order = co_await redis.mutex("order").lock();
  std::cout << "shipping\n";
  std::raise(SIGTERM);  // here it comes from ourselves
  co_await holdfast::as_result(terminating.async_wait(asio::use_awaitable));
  auto stock = co_await redis.mutex("stock").lock();  // an owner that holds may still lock
  std::cout << "shipped: " << (order.held() && stock.held() ? "both locks were ours to the end" : "lost") << '\n';
}  // both locks are given back in the background, and drain() waits for that

asio::awaitable<void> wait_in_line(holdfast::client& redis) {
  const auto lease = co_await holdfast::as_result(redis.mutex("order").lock());
  std::cout << "who waits: " << (lease ? "got it" : lease.error().message()) << '\n';
}

asio::awaitable<void> terminate(holdfast::client& redis, holdfast::client& witness, asio::steady_timer& terminating) {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
  co_await signals.async_wait(asio::use_awaitable);
  std::cout << "SIGTERM\n";
  terminating.cancel();
  co_await redis.drain(10s);
  for (const char* name : {"order", "stock"})
    std::cout << name << ": " << (co_await witness.mutex(name).is_locked() ? "locked" : "free") << '\n';
}

int main(int argc, char** argv) {
  const holdfast::config settings{.url = argc > 1 ? argv[1] : "redis://localhost"};
  asio::io_context io;
  holdfast::client redis{io.get_executor(), settings}, witness{io.get_executor(), settings};
  asio::steady_timer terminating(io, asio::steady_timer::time_point::max());
  holdfast::owner request;
  const auto ended = [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  };
  asio::co_spawn(io, terminate(redis, witness, terminating), ended);
  asio::co_spawn(request.bind(io.get_executor()), ship(redis, terminating), ended);
  asio::co_spawn(io, wait_in_line(redis), ended);
  io.run();
}

// Output:
//   shipping
//   SIGTERM
//   who waits: the client shuts down
//   shipped: both locks were ours to the end
//   order: free
//   stock: free
