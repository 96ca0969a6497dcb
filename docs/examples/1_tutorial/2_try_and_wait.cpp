// SPDX-License-Identifier: BSL-1.0
// Asking for a lock that somebody else holds: now or never, for a while, and on terms of one's own.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> ask(holdfast::client& redis) {
  auto mutex = redis.mutex("report");
  auto first = co_await mutex.lock();  // no owner: the calls below are by others

  auto now = co_await mutex.try_lock();
  std::cout << "at once: " << (now ? "got it" : "busy") << '\n';

  auto soon = co_await mutex.try_lock_for(50ms);  // an empty optional is contention, not an error
  std::cout << "within 50 ms: " << (soon ? "got it" : "busy") << '\n';

  co_await first.unlock();

  auto mine = co_await mutex.try_lock_for(2s, {.ttl = 10s});  // a TTL of its own: not renewed
  if (!mine) co_return;
  std::cout << "after the unlock: got it, over in 10 s: " << (mine->valid_for() <= 10s ? "yes" : "no") << '\n';
  co_await mine->unlock();

  // Renewed every TTL/3, for five minutes at most.
  auto renewed = co_await mutex.lock({.ttl = 10s, .renew = true, .max_hold = 5min});
  std::cout << "renewed: " << (renewed.held() ? "held" : "not held") << '\n';
}  // ~lease releases in the background

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  asio::co_spawn(io, ask(redis), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();  // returns when the release has ended
}

// Output:
//   at once: busy
//   within 50 ms: busy
//   after the unlock: got it, over in 10 s: yes
//   renewed: held
