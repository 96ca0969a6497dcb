// SPDX-License-Identifier: BSL-1.0
// One credit, two requests at the same time. Without a lock both see the credit before either has used it, and it is
// drawn twice; with the lock once.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

struct account {  // stands for a row in a database
  int credit = 1;
  int draws = 0;
};

asio::awaitable<void> draw(account& a) {
  const int seen = a.credit;                 // SELECT credit …
  co_await asio::post(asio::use_awaitable);  // … others are served meanwhile …
  if (seen < 1) co_return;
  a.credit = seen - 1;  // … UPDATE
  ++a.draws;
}

asio::awaitable<void> draw_locked(account& a, holdfast::client& redis) {
  auto lease = co_await redis.mutex("account:7").lock();
  co_await draw(a);
  co_await lease.unlock();
}

asio::awaitable<void> play(holdfast::client& redis) {
  account careless, careful;
  co_await (draw(careless) && draw(careless));
  std::cout << "without the lock: " << careless.draws << " draws for one credit\n";
  co_await (draw_locked(careful, redis) && draw_locked(careful, redis));
  std::cout << "with the lock: " << careful.draws << " draw for one credit\n";
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  asio::co_spawn(io, play(redis), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   without the lock: 2 draws for one credit
//   with the lock: 1 draw for one credit
