// SPDX-License-Identifier: BSL-1.0
// A wait that is cancelled leaves nothing behind: no key, no place in the line, no renewal.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;

asio::awaitable<void> wait_forever(holdfast::client& redis) {
  auto lease = co_await redis.mutex("m").lock();
  std::cout << "never printed\n";
}

asio::awaitable<void> show(holdfast::client& redis) {
  const auto here = co_await asio::this_coro::executor;
  auto mutex = redis.mutex("m");
  auto lease = co_await mutex.lock();

  // The operator || cancels what is slower. A lease that is won at the last moment is released by its destructor.
  asio::steady_timer patience(here, 20ms);
  auto first = co_await (mutex.lock() || patience.async_wait(asio::use_awaitable));
  std::cout << (first.index() == 0 ? "got it" : "gave up") << '\n';

  // A signal cancels a whole task.
  asio::cancellation_signal stop;
  asio::steady_timer ended(here, 1h);
  auto on_end = [&](std::exception_ptr why) {
    std::cout << (why ? "cancelled" : "got it") << '\n';
    ended.cancel();
  };
  asio::co_spawn(here, wait_forever(redis), asio::bind_cancellation_slot(stop.slot(), on_end));
  asio::post(here, [&] { stop.emit(asio::cancellation_type::terminal); });
  co_await holdfast::as_result(ended.async_wait(asio::use_awaitable));

  co_await lease.unlock();
  auto again = co_await mutex.try_lock();  // would be empty while anybody waited here
  std::cout << "afterwards: " << (again ? "free" : "busy") << '\n';
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  asio::co_spawn(io, show(redis), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   gave up
//   cancelled
//   afterwards: free
