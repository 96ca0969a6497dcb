// SPDX-License-Identifier: BSL-1.0
// Permits for plain threads.
#include <atomic>
#include <concepts>
#include <future>
#include <semaphore>
#include <thread>
#include <type_traits>
#include <vector>

#include "integration/blocking_world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct semaphore_world : blocking_world {
  long long out() { return eye("ZCARD", "{s}:timeout").integer(); }
  void see_waiter() {
    see([&] { return eye("PUBSUB", "NUMSUB", "redisson_sc:{s}").array()[1] == 1; });
  }
};

/// Code for a semaphore of either library.
template <class Semaphore>
int most_inside(Semaphore& permits) {
  std::atomic<int> inside = 0, most = 0;
  std::vector<std::thread> threads;
  for (int n = 0; n < 6; ++n)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        permits.acquire();
        const int now = ++inside;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --inside;
        permits.release();
      }
    });
  for (auto& each : threads) each.join();
  return most;
}

error_code code_of_release(blocking::expirable_semaphore& s, std::ptrdiff_t n = 1) {
  return client_side::code_of_call([&] { s.release(n); });
}

}  // namespace

static_assert(std::is_nothrow_move_constructible_v<blocking::expirable_semaphore>);
static_assert(!std::is_copy_constructible_v<blocking::expirable_semaphore>);
static_assert(!std::derived_from<blocking::expirable_semaphore, blocking::lockable>);

TEST_CASE_METHOD(semaphore_world, "code that is a template over std::counting_semaphore takes a semaphore of threads") {
  blocking::client redis(settings());
  auto ours = redis.expirable_semaphore("s", 2);
  std::counting_semaphore<2> theirs(2);
  CHECK(most_inside(ours) <= 2);
  CHECK(most_inside(theirs) <= 2);
  CHECK(ours.max() >= theirs.max());
  CHECK(out() == 0);
  CHECK(eye("GET", "s") == "2");
}

TEST_CASE_METHOD(semaphore_world, "a permit outlives the thread that took it, and any thread gives it back") {
  blocking::client redis(settings());
  auto s = redis.expirable_semaphore("s", 2);
  std::thread([&] { s.acquire(); }).join();
  CHECK(out() == 1);
  CHECK(s.available() == 1);
  CHECK(s.try_acquire());
  CHECK_FALSE(s.try_acquire());
  CHECK_FALSE(s.try_acquire_for(10ms));
  CHECK_FALSE(s.try_acquire_until(std::chrono::system_clock::now() + 10ms));
  std::thread([&] { s.release(2); }).join();
  CHECK(out() == 0);
  CHECK(s.try_acquire_until(std::chrono::steady_clock::now()));
  s.release(0);
  CHECK(out() == 1);
}

TEST_CASE_METHOD(semaphore_world, "a release of more permits than an object has gives back those, and says so") {
  blocking::client redis(settings());
  auto s = redis.expirable_semaphore("s", 3), other = redis.expirable_semaphore("s", 3);
  CHECK(code_of_release(s) == errc::not_held);
  s.acquire();
  other.acquire();
  CHECK(code_of_release(s, 2) == errc::not_held);
  CHECK(out() == 1);
  CHECK(code_of_release(other, -1) == errc::invalid_argument);
  CHECK_FALSE(code_of_release(other));
  auto moved = std::move(other);
  CHECK(code_of_release(other) == errc::closed);
  CHECK(other.name().empty());
  CHECK(moved.name() == "s");
}

TEST_CASE_METHOD(semaphore_world, "a thread waits for a permit, and gets the one that comes back") {
  blocking::client redis(settings()), elsewhere(settings());
  auto s = redis.expirable_semaphore("s", 1), far = elsewhere.expirable_semaphore("s", 1);
  far.acquire();
  auto waiting = std::async(std::launch::async, [&] { s.acquire(); });
  see_waiter();
  far.release();
  waiting.get();
  CHECK(far.available() == 0);
  s.set_permits(2);
  CHECK(far.available() == 1);
  CHECK(far.force_release() == 1);
  CHECK(far.available() == 2);
}

TEST_CASE_METHOD(semaphore_world, "while a client drains, a thread that took a permit may take more, and no other") {
  blocking::client redis(settings());
  auto s = redis.expirable_semaphore("s", 3);
  s.acquire();
  auto drained = std::async(std::launch::async, [&] { redis.drain(20s); });
  const auto try_once = [&] {
    if (s.try_acquire()) s.release();
  };
  std::async(std::launch::async, [&] {
    see([&] { return client_side::code_of_call(try_once) == errc::shutting_down; });
  }).get();
  CHECK(s.try_acquire());
  CHECK(out() == 2);
  s.release(2);
  drained.get();
  CHECK(out() == 0);
}

TEST_CASE_METHOD(semaphore_world, "the end of the object gives its permits back, and wakes who waits in it") {
  blocking::client redis(settings());
  std::optional<blocking::expirable_semaphore> s(redis.expirable_semaphore("s", 1));
  s->acquire();
  auto waiting = std::async(std::launch::async, [&] { return client_side::code_of_call([&] { s->acquire(); }); });
  see_waiter();
  s.reset();
  CHECK(waiting.get() == errc::closed);
  see([&] { return out() == 0; });
}

TEST_CASE_METHOD(semaphore_world, "a function under a permit learns of the loss by its token, and its caller by lost") {
  blocking::client redis(settings_with([](config& c) { c.ttl = 300ms; }));
  const auto s = redis.expirable_semaphore("s", 2);
  CHECK(blocking::with_lock(s, [&](std::stop_token) { return s.available(); }) == 1);
  CHECK(blocking::try_with_lock_for(s, 1s, [](std::stop_token) { return 7; }) == 7);
  CHECK(out() == 0);
  std::atomic<bool> told = false;
  const auto lose = [&](std::stop_token lost) {
    CHECK(redis.expirable_semaphore("s", 2).force_release() == 1);
    see([&] { return lost.stop_requested(); });
    told = true;
  };
  CHECK(client_side::code_of_call([&] { blocking::with_lock(s, lose); }) == errc::lost);
  CHECK(told);
}

TEST_CASE_METHOD(semaphore_world, "a permit is one of several locks of a thread") {
  blocking::client redis(settings());
  const auto s = redis.expirable_semaphore("s", 1);
  const auto m = redis.mutex("m"), permit = s.as_mutex();
  blocking::multi_lock both({permit, m});
  both.lock();
  CHECK(out() == 1);
  CHECK(eye("EXISTS", "m") == 1);
  both.unlock();
  CHECK(out() == 0);
  CHECK(eye("EXISTS", "m") == 0);
}
