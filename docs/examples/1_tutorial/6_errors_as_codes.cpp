// SPDX-License-Identifier: BSL-1.0
// Codes instead of exceptions: as_result works on every awaitable of the library. Contention is no error in either
// form.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using namespace std::chrono_literals;

template <class T>
void print(const char* what, const holdfast::result<T>& outcome) {
  std::cout << what << ": " << (outcome ? "ok" : outcome.error().message()) << '\n';
}

asio::awaitable<void> ask(holdfast::client& redis, holdfast::client& nowhere) {
  using holdfast::as_result;
  auto lock = co_await as_result(redis.mutex("m").lock());
  print("lock", lock);
  if (lock.has_error()) co_return;
  print("unlock", co_await as_result(lock->unlock()));
  print("unlock again", co_await as_result(lock->unlock()));
  print("a name of no bytes", co_await as_result(redis.mutex("").lock()));
  print("a TTL of 1 ms", co_await as_result(redis.mutex("m").lock({.ttl = 1ms})));
  print("a wait of -1 ms", co_await as_result(redis.mutex("m").try_lock_for(-1ms)));

  auto away = co_await as_result(nowhere.mutex("m").try_lock());
  print("no server", away);
  if (away.has_error() && away.error() == holdfast::condition::retry_later) std::cout << "worth another try\n";

  try {
    co_await nowhere.mutex("m").try_lock();
  } catch (const holdfast::error& e) {  // the same as an exception
    std::cout << "caught: " << e.code().message() << '\n';
  }
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  holdfast::client nowhere{io.get_executor(), {.url = "redis+unix:///nonexistent/redis.sock", .command_timeout = 50ms}};
  asio::co_spawn(io, ask(redis, nowhere), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   lock: ok
//   unlock: ok
//   unlock again: the lease holds nothing
//   a name of no bytes: invalid name
//   a TTL of 1 ms: invalid TTL
//   a wait of -1 ms: invalid wait
//   no server: no answer from Redis
//   worth another try
//   caught: no answer from Redis
