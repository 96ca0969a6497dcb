// SPDX-License-Identifier: BSL-1.0
// Whose lock is it? An owner is one logical task. It re-enters what it holds; everybody else waits.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;

asio::awaitable<void> stranger(holdfast::client& redis) {
  auto lease = co_await redis.mutex("book").try_lock();
  std::cout << "a stranger: " << (lease ? "got it" : "busy") << '\n';
}

asio::awaitable<void> helper(holdfast::client& redis, holdfast::owner whose) {
  auto mutex = redis.mutex("book", whose);  // on behalf of that owner, on whatever executor this runs
  auto lease = co_await mutex.lock();
  const unsigned count = co_await mutex.hold_count(whose);
  std::cout << "a helper: held " << count << " times\n";
}  // ~lease gives back one of the two

asio::awaitable<void> editor(holdfast::client& redis, asio::any_io_executor unbound) {
  auto mutex = redis.mutex("book");
  auto lease = co_await mutex.lock();  // the owner is the one bound in main()
  co_await asio::co_spawn(unbound, stranger(redis), asio::use_awaitable);
  co_await asio::co_spawn(unbound, helper(redis, lease.owner()), asio::use_awaitable);
  co_await lease.unlock();  // the last one frees the lock
  const bool locked = co_await mutex.is_locked();
  std::cout << "afterwards: " << (locked ? "locked" : "free") << '\n';
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  holdfast::owner task;
  asio::co_spawn(task.bind(io.get_executor()), editor(redis, io.get_executor()), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   a stranger: busy
//   a helper: held 2 times
//   afterwards: free
