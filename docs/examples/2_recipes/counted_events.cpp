// SPDX-License-Identifier: BSL-1.0
// Numbers for a dashboard: an observer counts each kind of event in an array, and what is held at the moment. Any
// thread may read them. Alarms: lost, release_failed, release_given_up, renewal_failed, outage.
#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using kind = holdfast::event_kind;

struct counters final : holdfast::observer {
  void on(const holdfast::event& e) noexcept override {
    ++times[static_cast<std::size_t>(e.kind)];
    if (e.kind == kind::acquired) ++held;
    if (holdfast::ends_hold(e.kind)) --held;
  }
  void print() const {
    for (std::size_t k = 0; k < holdfast::event_kinds; ++k)
      if (times[k] > 0) std::cout << to_string(static_cast<kind>(k)) << ": " << times[k] << '\n';
    std::cout << "held now: " << held << '\n';
  }
  std::array<std::atomic<long>, holdfast::event_kinds> times{};
  std::atomic<long> held{0};
};

asio::awaitable<void> work(holdfast::client& redis, const counters& seen) {
  holdfast::owner task;
  auto outer = co_await redis.mutex("m", task).lock();
  auto inner = co_await redis.mutex("m", task).lock();  // no hold of its own
  auto other = co_await redis.mutex("m").try_lock();    // somebody else: busy
  if (!other) std::cout << "held while busy: " << seen.held << '\n';
  co_await inner.unlock();
  co_await outer.unlock();
  auto kept = co_await redis.mutex("kept").lock();
  co_await redis.shutdown(std::chrono::seconds(1));  // ends it, and that is no loss
}

int main(int argc, char** argv) {
  asio::io_context io;
  auto seen = std::make_shared<counters>();
  holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost", .observer = seen}};
  asio::co_spawn(io, work(redis, *seen), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
  seen->print();
}

// Output:
//   held while busy: 1
//   acquired: 2
//   reentered: 1
//   not_acquired: 1
//   released: 1
//   closed: 1
//   released_late: 1
//   connected: 1
//   held now: 0
