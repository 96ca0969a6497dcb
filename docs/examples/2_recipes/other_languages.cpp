// SPDX-License-Identifier: BSL-1.0
// A lock that clients of other languages take, too, by SET report <value> NX PX <ttl>. It does not nest.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;

const char* yes(bool b) { return b ? "yes" : "no"; }

asio::awaitable<void> page(holdfast::client& redis) {
  auto mutex = redis.simple_mutex("report");
  const auto again = co_await as_result(mutex.lock());  // a mutex would let its owner in once more
  std::cout << "a page: " << (again ? "got it" : again.error().message()) << '\n';
  if (again.has_error() && again.error() == holdfast::errc::already_held) std::cout << "so it writes without\n";
}

asio::awaitable<void> write_report(holdfast::client& redis, holdfast::client& elsewhere) {
  auto mutex = redis.simple_mutex("report");
  auto lease = co_await mutex.lock();  // renewed while it lives
  const auto who = co_await mutex.holder();
  std::cout << "the key's value is the lease's id: " << yes(who && who->id == lease.id()) << '\n';
  const auto other = co_await elsewhere.simple_mutex("report").try_lock();
  std::cout << "another client: " << (other ? "got it" : "busy") << '\n';
  co_await page(redis);  // the same task, and so the same owner
  std::cout << "still held: " << yes(lease.held()) << '\n';
  co_await lease.unlock();  // compares the value, deletes the key, and wakes who waits with holdfast
  std::cout << "then: " << (co_await mutex.is_locked() ? "held" : "free") << '\n';
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  asio::io_context io;
  holdfast::client redis{io, {.url = url}}, elsewhere{io, {.url = url}};
  holdfast::owner task;  // without one, the page would wait for its own task for ever
  asio::co_spawn(task.bind(io.get_executor()), write_report(redis, elsewhere), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   the key's value is the lease's id: yes
//   another client: busy
//   a page: already held by this owner
//   so it writes without
//   still held: yes
//   then: free
