// SPDX-License-Identifier: BSL-1.0
// with_lock: lock, run a body, unlock, whatever the body does. Should the lock be lost meanwhile, the body is
// cancelled.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <stdexcept>
namespace asio = boost::asio;

asio::awaitable<void> note(holdfast::client& redis, int amount) {
  auto nested = co_await redis.mutex("account").lock();  // inside a body the owner is bound: re-entry
  std::cout << "paid " << amount << '\n';
  co_await nested.unlock();
}

asio::awaitable<int> pay(holdfast::client& redis, int balance, int amount) {
  auto mutex = redis.mutex("account");
  auto body = [&](holdfast::lease&) -> asio::awaitable<int> {  // g++ 12: name it, then pass it
    if (amount > balance) throw std::runtime_error("not enough money");
    co_await note(redis, amount);
    co_return balance - amount;
  };
  co_return co_await holdfast::with_lock(mutex, body);
}

asio::awaitable<void> shop(holdfast::client& redis) {
  const int left = co_await pay(redis, 10, 7);
  std::cout << "left: " << left << '\n';
  try {
    co_await pay(redis, left, 7);
  } catch (const std::runtime_error& refused) {
    std::cout << "refused: " << refused.what() << '\n';
  }
  const bool locked = co_await redis.mutex("account").is_locked();
  std::cout << "afterwards: " << (locked ? "locked" : "free") << '\n';
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  asio::co_spawn(io, shop(redis), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   paid 7
//   left: 3
//   refused: not enough money
//   afterwards: free
