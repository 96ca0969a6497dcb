// SPDX-License-Identifier: BSL-1.0
// In a stackful coroutine of boost::asio::spawn: co_spawn(executor, awaitable, as_tuple(yield)). It needs
// Boost.Context, a library to link (on Debian 12 libboost-context1.81-dev), which holdfast itself does not need.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/spawn.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;

/// Not the bare `yield`: with Boost 1.81 it does not compile for an awaitable that has a value, and crashes for one
/// that has none.
template <class T>
T wait(asio::awaitable<T> operation, asio::yield_context yield) {
  auto answer = asio::co_spawn(yield.get_executor(), std::move(operation), asio::as_tuple(yield));
  if (const auto failed = std::get<0>(answer)) std::rethrow_exception(failed);
  if constexpr (!std::is_void_v<T>) return std::get<1>(std::move(answer));
}

void work(holdfast::client& redis, asio::yield_context yield) {
  auto lease = wait(redis.mutex("a").lock(), yield);
  std::cout << "yield_context: " << (lease.held() ? "held" : "lost") << '\n';
  wait(lease.unlock(), yield);
  try {
    wait(redis.mutex("").try_lock(), yield);
  } catch (const holdfast::error& e) {
    std::cout << "without a name: " << e.code().message() << '\n';
  }
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io, {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  auto rethrow = [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  };
  asio::spawn(
      io, [&](asio::yield_context yield) { work(redis, yield); }, rethrow);
  io.run();
}

// Output:
//   yield_context: held
//   without a name: invalid name
