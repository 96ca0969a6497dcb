// SPDX-License-Identifier: BSL-1.0
// A lock is lost while the work runs: the body is cancelled, and the caller hears `lost`. Here an operator breaks the
// lock; an expired TTL or an emptied server ends the same way.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> long_work() {
  asio::steady_timer work(co_await asio::this_coro::executor, 1h);
  co_await work.async_wait(asio::use_awaitable);
}

asio::awaitable<void> run(holdfast::client& redis, holdfast::client& elsewhere) {
  auto mutex = redis.mutex("export");
  auto body = [&](holdfast::lease& lease) -> asio::awaitable<void> {
    std::cout << "held: " << std::boolalpha << lease.held() << '\n';
    const bool broken = co_await elsewhere.mutex("export").force_unlock();
    std::cout << "broken from elsewhere: " << broken << '\n';
    co_await long_work();  // ends within a third of the TTL: the next renewal finds the loss
    std::cout << "never printed\n";
  };
  try {
    co_await holdfast::with_lock(mutex, body);
  } catch (const holdfast::error& e) {
    if (e.code() != holdfast::errc::lost) throw;
    std::cout << e.what() << '\n';
    try {
      std::rethrow_if_nested(e);  // what the body ended with
    } catch (const boost::system::system_error& inner) {
      std::cout << "cancelled: " << (inner.code() == asio::error::operation_aborted) << '\n';
    }
  }
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  asio::io_context io;
  holdfast::client redis{io.get_executor(), {.url = url, .ttl = 300ms}}, elsewhere{io.get_executor(), {.url = url}};
  asio::co_spawn(io, run(redis, elsewhere), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   held: true
//   broken from elsewhere: true
//   the lock was lost: lock 'export': lost while its section ran: Redis answered that its key is gone or another's
//   cancelled: true
