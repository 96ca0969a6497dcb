// SPDX-License-Identifier: BSL-1.0
// SIGTERM: finish what was begun, then shutdown(). It fails those who still wait, gives back what is still held, and
// waits for the answers.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> wait_in_line(holdfast::client& redis) {
  const auto lease = co_await holdfast::as_result(redis.mutex("job").lock());
  std::cout << "who waits: " << (lease ? "got it" : lease.error().message()) << '\n';
}

asio::awaitable<void> run(holdfast::client& redis, holdfast::client& witness) {
  const auto here = co_await asio::this_coro::executor;
  asio::signal_set signals(here, SIGINT, SIGTERM);
  auto job = co_await redis.mutex("job").lock();
  auto forgotten = co_await redis.mutex("forgotten").lock();
  asio::co_spawn(here, wait_in_line(redis), [](std::exception_ptr) {});

  std::cout << "working\n";
  std::raise(SIGTERM);  // here it comes from ourselves
  co_await signals.async_wait(asio::use_awaitable);
  std::cout << "the job is finished: " << (job.held() ? "its lock was ours to the end" : "lost") << '\n';

  co_await redis.shutdown(5s);
  std::cout << "what was forgotten: " << (forgotten.held() ? "held" : "not held any more") << '\n';
  for (const char* name : {"job", "forgotten"}) {
    const bool locked = co_await witness.mutex(name).is_locked();
    std::cout << name << ": " << (locked ? "locked" : "free") << '\n';
  }
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  asio::io_context io;
  holdfast::client redis{io.get_executor(), {.url = url}}, witness{io.get_executor(), {.url = url}};
  asio::co_spawn(io, run(redis, witness), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   working
//   the job is finished: its lock was ours to the end
//   who waits: the client is closed
//   what was forgotten: not held any more
//   job: free
//   forgotten: free
