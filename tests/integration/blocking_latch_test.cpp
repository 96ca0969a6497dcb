// SPDX-License-Identifier: BSL-1.0
// Latches for plain threads.
#include <atomic>
#include <concepts>
#include <future>
#include <latch>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "integration/blocking_world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct latch_world : blocking_world {
  void see_waiters(long long clients) {
    see([&] {
      return eye("PUBSUB", "NUMSUB", "redisson_countdownlatch__channel__{start}").array()[1].integer() == clients;
    });
  }
};

/// Code for a latch of either library: how many threads went on before all had arrived.
template <class Latch>
int early(Latch& all_here, int threads) {
  std::atomic<int> arrived = 0, too_early = 0;
  std::vector<std::thread> each;
  for (int n = 0; n < threads; ++n)
    each.emplace_back([&] {
      ++arrived;
      all_here.arrive_and_wait();
      if (arrived < threads) ++too_early;
    });
  for (auto& thread : each) thread.join();
  return too_early;
}

}  // namespace

static_assert(std::is_nothrow_move_constructible_v<blocking::latch>);
static_assert(!std::is_copy_constructible_v<blocking::latch>);

TEST_CASE_METHOD(latch_world, "code that is a template over std::latch takes a latch of threads") {
  blocking::client redis(settings());
  auto ours = redis.latch("start");
  CHECK(ours.try_set(6));
  std::latch theirs(6);
  CHECK(early(ours, 6) == 0);
  CHECK(early(theirs, 6) == 0);
  CHECK(ours.try_wait());
  CHECK(ours.count() == 0);
}

TEST_CASE_METHOD(latch_world, "threads of two clients wait for the last count of either") {
  blocking::client redis(settings()), other(settings());
  auto start = redis.latch("start"), same = other.latch("start");
  CHECK(start.try_set(2));
  CHECK_FALSE(same.try_set(1));
  CHECK(start.name() == "start");
  auto waits = std::async(std::launch::async, [&] { start.wait(); });
  see_waiters(1);
  same.count_down();
  CHECK(start.count() == 1);
  CHECK_FALSE(same.wait_for(10ms));
  CHECK_FALSE(same.wait_until(std::chrono::steady_clock::now() - 1s));
  start.count_down(7);
  waits.get();
  CHECK(same.wait_for(1h));
}

TEST_CASE_METHOD(latch_world, "a count outside its range is refused to a thread") {
  blocking::client redis(settings());
  auto start = redis.latch("start");
  for (const std::ptrdiff_t bad : {std::ptrdiff_t(0), std::ptrdiff_t(-1), blocking::latch::max() + 1}) {
    CHECK(code_of_call([&] { (void)start.try_set(bad); }) == errc::invalid_argument);
    CHECK(code_of_call([&] { start.count_down(bad); }) == errc::invalid_argument);
    CHECK(code_of_call([&] { start.arrive_and_wait(bad); }) == errc::invalid_argument);
  }
  CHECK(keys().empty());
}

TEST_CASE_METHOD(latch_world, "a thread that waits is told when its client ends, or drains") {
  std::optional<blocking::client> redis(settings());
  auto start = redis->latch("start");
  CHECK(start.try_set(1));
  SECTION("ends") {
    auto waits = std::async(std::launch::async, [&] { return code_of_call([&] { start.wait(); }); });
    see_waiters(1);
    redis.reset();
    CHECK(waits.get() == errc::shutting_down);
    CHECK(code_of_call([&] { start.count_down(); }) == errc::shutting_down);
  }
  SECTION("drains") {
    auto held = redis->mutex("m");
    held.lock();
    auto waits = std::async(std::launch::async, [&] { return code_of_call([&] { start.wait(); }); });
    see_waiters(1);
    auto drains = std::async(std::launch::async, [&] { redis->drain(10s); });
    CHECK(waits.get() == errc::shutting_down);
    start.count_down();
    CHECK(start.try_wait());
    held.unlock();
    drains.get();
  }
}

TEST_CASE_METHOD(latch_world, "a latch that was moved from is closed, and the other one goes on") {
  blocking::client redis(settings());
  auto start = redis.latch("start");
  auto moved = std::move(start);
  CHECK(code_of_call([&] { (void)start.try_wait(); }) == errc::closed);
  CHECK(start.name().empty());
  CHECK(moved.try_wait());
  auto other = redis.latch("other");
  other = std::move(moved);
  CHECK(other.name() == "start");
  CHECK(other.try_wait());
}
