// SPDX-License-Identifier: BSL-1.0
// Many threads, one client: run under ThreadSanitizer. What the lock guards is an ordinary variable on purpose.
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/strand.hpp>
#include <random>
#include <thread>

#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace asio::experimental::awaitable_operators;

namespace {

constexpr int tasks = 16;
constexpr int rounds = 640;  // of each task: more than ten thousand operations together

/// What the tasks share.
struct shop {
  explicit shop(client& c) : redis(c) {}
  client& redis;
  long guarded[4] = {};  // each under the lock of its number
  std::atomic<long> expected{0};
  std::atomic<long> operations{0};
  std::atomic<int> left{tasks};
  std::exception_ptr failed;
  std::mutex failure;
};

/// Takes a lease over from another task, perhaps on another context, and gives it back.
asio::awaitable<void> finish(lease held, shop& s, int which) {
  ++s.guarded[which];
  co_await held.unlock();
}

asio::awaitable<void> work(shop& s, std::vector<asio::any_io_executor> places, int seed) {
  std::mt19937 dice(static_cast<unsigned>(seed));
  asio::steady_timer alarm(co_await asio::this_coro::executor);
  for (int i = 0; i < rounds; ++i) {
    const int which = static_cast<int>(dice() % 4);
    auto mutex = s.redis.mutex("shelf" + std::to_string(which));
    ++s.operations;
    switch (dice() % 5) {
      case 0: {  // give up early, at any point
        alarm.expires_after(std::chrono::microseconds(dice() % 2000));
        auto won = co_await (mutex.lock() || alarm.async_wait(asio::use_awaitable));
        if (won.index() == 0) {
          ++s.guarded[which];
          ++s.expected;
        }
        break;  // a lease is dropped, not unlocked
      }
      case 1: {
        auto got = co_await as_result(mutex.try_lock_for(std::chrono::milliseconds(dice() % 3)));
        if (!got && got.error() != errc::unreachable) got.value();  // so short a wait may end before Redis answers
        if (!got || !*got) break;
        ++s.guarded[which];
        ++s.expected;
        co_await (*got)->unlock();
        break;
      }
      case 2: {  // another task on another context ends it
        auto held = co_await mutex.lock();
        ++s.expected;
        asio::co_spawn(places[dice() % places.size()], finish(std::move(held), s, which), asio::detached);
        break;
      }
      default: {
        auto held = co_await mutex.lock();
        ++s.guarded[which];
        ++s.expected;
        co_await held.unlock();
      }
    }
  }
}

/// `contexts` contexts with `threads` threads together; the client lives on the first.
void run_shop(int contexts, int threads) {
  world w;
  std::vector<std::unique_ptr<asio::io_context>> places;
  for (int i = 0; i < contexts; ++i) places.push_back(std::make_unique<asio::io_context>());
  std::vector<asio::any_io_executor> executors;
  for (auto& p : places) executors.push_back(p->get_executor());
  auto settings = w.settings();
  settings.command_timeout = 5s;  // on a busy machine with a sanitizer
  auto redis = std::make_unique<client>(executors[0], settings);
  shop s(*redis);
  for (int i = 0; i < tasks; ++i) {
    auto ended = [&](std::exception_ptr e) {
      const std::lock_guard lock(s.failure);
      if (e) s.failed = e;
      --s.left;
    };
    asio::co_spawn(asio::make_strand(executors[static_cast<std::size_t>(i) % executors.size()]), work(s, executors, i),
                   ended);
  }
  std::vector<std::thread> pool;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> open;
  for (auto& p : places) open.emplace_back(p->get_executor());
  for (int i = 0; i < threads; ++i)
    pool.emplace_back([&, i] { places[static_cast<std::size_t>(i) % places.size()]->run(); });
  asio::io_context watch;
  asio::steady_timer tick(watch);
  const auto limit = std::chrono::steady_clock::now() + 100s;
  while (s.left > 0 && std::chrono::steady_clock::now() < limit) {
    tick.expires_after(10ms);
    tick.wait();
  }
  const bool all_ended = s.left == 0;
  open.clear();
  if (!all_ended)
    for (auto& p : places) p->stop();
  for (auto& t : pool) t.join();
  REQUIRE(all_ended);
  if (s.failed) std::rethrow_exception(s.failed);
  long sum = 0;
  for (const auto g : s.guarded) sum += g;
  CHECK(sum == s.expected);
  CHECK(s.operations >= 10'000);
  CHECK(w.keys().empty());
  CHECK(w.eye("PUBSUB", "CHANNELS", of_locks).array().empty());
}

}  // namespace

TEST_CASE("four threads on one context share a client") { run_shop(1, 4); }
TEST_CASE("four contexts of one thread each share a client and pass leases") { run_shop(4, 4); }
