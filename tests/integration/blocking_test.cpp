// SPDX-License-Identifier: BSL-1.0
// The locks for plain threads: what the standard library asks of them, whose they are, how a loss is told.
#include "integration/blocking_world.hpp"

#include <concepts>
#include <limits>
#include <shared_mutex>

#include "integration/red_world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

using boost::system::errc::resource_deadlock_would_occur;

// [thread.req.lockable]
template <class L>
concept is_basic_lockable = requires(L& m) {
  m.lock();
  { m.unlock() } noexcept;
};
template <class L>
concept is_lockable = is_basic_lockable<L> && requires(L& m) {
  { m.try_lock() } -> std::same_as<bool>;
};
template <class L>
concept is_timed_lockable = is_lockable<L> && requires(L& m) {
  { m.try_lock_for(std::chrono::nanoseconds()) } -> std::same_as<bool>;
  { m.try_lock_for(std::chrono::duration<double>()) } -> std::same_as<bool>;
  { m.try_lock_for(std::chrono::hours()) } -> std::same_as<bool>;
  { m.try_lock_until(std::chrono::steady_clock::time_point()) } -> std::same_as<bool>;
  { m.try_lock_until(std::chrono::system_clock::time_point()) } -> std::same_as<bool>;
};
static_assert(is_timed_lockable<blocking::mutex>);
static_assert(is_timed_lockable<blocking::fenced_mutex>);
static_assert(is_timed_lockable<blocking::simple_mutex>);
static_assert(is_timed_lockable<blocking::red_lock>);
static_assert(is_timed_lockable<blocking::multi_lock>);
static_assert(is_timed_lockable<blocking::any_of>);
static_assert(!std::copyable<blocking::mutex> && std::movable<blocking::mutex> && std::movable<blocking::client>);

/// Each call that the standard library makes of a TimedLockable, where it is free and where another thread has it.
template <class Lock>
void make_each_call(Lock& m) {
  const auto elsewhere_free = [&] { return in_thread([&] { return m.try_lock() ? (m.unlock(), true) : false; }); };

  m.lock();
  CHECK(m.held());
  CHECK(m.valid_for() > 0ms);
  CHECK(in_vain([&] { return m.try_lock(); }));
  CHECK(in_vain([&] { return m.try_lock_for(5ms); }));
  CHECK(in_vain([&] { return m.try_lock_until(std::chrono::steady_clock::now() + 5ms); }));
  CHECK(in_vain([&] { return m.try_lock_until(std::chrono::system_clock::now() + 5ms); }));
  m.unlock();
  CHECK_FALSE(m.held());
  CHECK(elsewhere_free());

  CHECK(m.try_lock());
  CHECK(m.held());
  m.unlock();
  CHECK(m.try_lock_for(1s));
  m.unlock();
  CHECK(m.try_lock_until(std::chrono::system_clock::now() + 1s));
  m.unlock();

  {
    std::unique_lock lock(m, std::defer_lock);
    CHECK(lock.try_lock_for(std::chrono::duration<double>(1.5)));
    lock.unlock();
    lock.lock();
    CHECK(m.held());
  }
  {
    std::unique_lock lock(m, std::try_to_lock);
    CHECK(lock.owns_lock());
  }
  {
    std::unique_lock lock(m, std::chrono::steady_clock::now() + 1h);
    CHECK(lock.owns_lock());
  }
  {
    const std::lock_guard lock(m);
    CHECK(m.held());
  }
  CHECK_FALSE(m.held());
  CHECK(elsewhere_free());
}

}  // namespace

TEST_CASE("each kind of blocking lock is called as the standard library calls a TimedLockable") {
  blocking_world w;
  {
    blocking::client redis(w.settings());
    auto plain = redis.mutex("plain");
    make_each_call(plain);
    auto fenced = redis.fenced_mutex("fenced");
    make_each_call(fenced);
    auto simple = redis.simple_mutex("simple");
    make_each_call(simple);
    auto a = redis.mutex("a"), b = redis.mutex("b");
    auto c = redis.simple_mutex("c");
    blocking::multi_lock all({a, b, c});
    make_each_call(all);
    blocking::any_of one({a});
    make_each_call(one);
  }
  CHECK(w.locks().empty());
  CHECK(w.heard->count(kind::lost) == 0);
  CHECK(w.heard->count(kind::foreign_unlock) == 0);
}

TEST_CASE("a blocking red_lock of either kind is called as the standard library calls a TimedLockable") {
  red_world w(3);
  blocking::client redis(w.settings());
  redis.wait(red_lock::initialise(redis.async()));
  for (const auto nested : both) {
    auto m = redis.red_lock("m", {}, nested);
    make_each_call(m);
  }
}

TEST_CASE("a wait that is over already is one attempt and a wait for ever does not overflow") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  using std::chrono::steady_clock;
  using std::chrono::system_clock;
  // Free: one attempt is enough.
  const auto had = [&](bool yes) {
    if (yes) m.unlock();
    return yes;
  };
  CHECK(had(m.try_lock_for(0s)));
  CHECK(had(m.try_lock_for(-1h)));
  CHECK(had(m.try_lock_for(std::chrono::hours::min())));
  CHECK(had(m.try_lock_for(std::chrono::hours::max())));
  CHECK(had(m.try_lock_for(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()))));
  CHECK(had(m.try_lock_for(std::chrono::duration<double>(std::numeric_limits<double>::infinity()))));
  CHECK(had(m.try_lock_until(steady_clock::now() - 1h)));
  CHECK(had(m.try_lock_until(steady_clock::time_point::min())));
  CHECK(had(m.try_lock_until(steady_clock::time_point::max())));
  CHECK(had(m.try_lock_until(system_clock::time_point::min())));
  CHECK(had(m.try_lock_until(system_clock::time_point::max())));
  CHECK(had(m.try_lock_until(std::chrono::time_point<system_clock, std::chrono::hours>::max())));

  // Taken: one attempt waits for nothing.
  const std::lock_guard held(m);
  const auto begin = steady_clock::now();
  CHECK_FALSE(in_thread([&] { return m.try_lock_until(system_clock::now() - 1h); }));
  CHECK_FALSE(in_thread([&] { return m.try_lock_until(steady_clock::time_point::min()); }));
  CHECK_FALSE(in_thread([&] { return m.try_lock_for(-1s); }));
  CHECK_FALSE(in_thread([&] { return m.try_lock(); }));
  CHECK(steady_clock::now() - begin < 10s);
  CHECK(w.heard->count(kind::not_acquired) == 4);
}

TEST_CASE("waits that end beyond what a clock can say go on until the lock is released") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  std::unique_lock held(m);
  crew waiters;
  waiting_thread threads[3];
  std::atomic<int> had{0};
  const auto wait = [&](int way) {
    if (way == 0) return m.try_lock_for(std::chrono::hours::max());
    if (way == 1) return m.try_lock_until(std::chrono::steady_clock::time_point::max());
    return m.try_lock_until(std::chrono::time_point<std::chrono::system_clock, std::chrono::hours>::max());
  };
  for (int way = 0; way < 3; ++way)
    waiters.start([&, way] {
      threads[way].begins();
      if (!wait(way)) return;
      ++had;
      m.unlock();
    });
  for (const auto& t : threads) see([&] { return t.asleep(); });
  held.unlock();
  waiters.join();
  CHECK(had == 3);
}

namespace {

/// A clock that the test sets: each look at it shows the next of these times.
struct shown_clock {
  using duration = milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<shown_clock>;
  [[maybe_unused]] static constexpr bool is_steady = false;  // a part of what a clock is
  static inline std::vector<milliseconds> shows;

  static time_point now() {
    const auto next = shows.front();
    if (shows.size() > 1) shows.erase(shows.begin());
    return time_point(next);
  }
};

}  // namespace

TEST_CASE("try_lock_until goes by its clock, also where that is set meanwhile") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  const std::lock_guard held(m);
  const auto attempts = [&](std::vector<milliseconds> shown) {
    shown_clock::shows = std::move(shown);
    const auto before = w.heard->count(kind::not_acquired);
    CHECK_FALSE(in_thread([&] { return m.try_lock_until(shown_clock::time_point(100ms)); }));
    return w.heard->count(kind::not_acquired) - before;
  };
  CHECK(attempts({95ms, 100ms}) == 1);
  CHECK(attempts({95ms, 90ms, 95ms, 101ms}) == 3);  // set back, twice
}

TEST_CASE("try_lock_for waits as long as it says and takes what is released meanwhile") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  std::unique_lock held(m);
  CHECK(in_thread([&] {
    const auto begin = std::chrono::steady_clock::now();
    return !m.try_lock_for(30ms) && std::chrono::steady_clock::now() - begin >= 30ms;
  }));
  crew waiter;
  waiter.start([&] {
    if (!m.try_lock_for(20s)) throw std::runtime_error("not had");
    m.unlock();
  });
  w.see_waiters("m");
  held.unlock();
  waiter.join();
}

TEST_CASE("a thread enters again by any object of the name and gives back as often") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m"), same = redis.mutex("m");
  m.lock();
  CHECK(m.try_lock());
  same.lock();
  CHECK(redis.mutex("m").hold_count() == 3);
  m.unlock();
  m.unlock();
  CHECK_FALSE(m.held());  // what is left was taken by the other
  CHECK(same.held());
  CHECK_FALSE(in_thread([&] { return m.try_lock(); }));
  CHECK(in_thread([&] { return redis.mutex("m").hold_count() == 0; }));
  same.unlock();
  CHECK(in_thread([&] { return m.try_lock() ? (m.unlock(), true) : false; }));
  CHECK(w.locks().empty());
}

TEST_CASE("a simple mutex is not entered again by its thread but waited for by others") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.simple_mutex("m");
  const std::lock_guard held(m);
  CHECK(w.code_of_call([&] { m.lock(); }) == errc::already_held);
  CHECK(w.code_of_call([&] { (void)m.try_lock(); }) == errc::already_held);
  CHECK(m.held());
  CHECK_FALSE(in_thread([&] { return m.try_lock(); }));
}

TEST_CASE("a fenced blocking mutex has a token that grows") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.fenced_mutex("m");
  CHECK_FALSE(m.token());
  CHECK_FALSE(m.last_token());
  m.lock();
  const auto first = m.token();
  REQUIRE(first);
  CHECK_FALSE(in_thread([&] { return m.token().has_value(); }));  // another thread has none
  m.unlock();
  m.lock();
  CHECK(m.token() > first);
  CHECK(m.last_token() >= m.token());
  m.unlock();
}

TEST_CASE("any_of says which lock it has and a thread gets another each time") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto a = redis.mutex("a"), b = redis.mutex("b");
  blocking::any_of one({a, b});
  CHECK(one.name().empty());
  one.lock();
  const auto first = one.name();
  CHECK(one.try_lock());
  CHECK(one.name() != first);
  CHECK_FALSE(one.try_lock());
  one.unlock();
  CHECK(one.name() == first);
  one.unlock();
  CHECK(w.locks().empty());
}

TEST_CASE("multi_lock takes all or none and of several clients") {
  blocking_world w, other;
  blocking::client here(w.settings()), there(other.settings());
  auto a = here.mutex("a"), b = there.mutex("b");
  blocking::multi_lock both({a, b});
  {
    const std::lock_guard lock(both);
    CHECK(both.held());
    CHECK(w.locks() == std::vector<std::string>{"a"});
    CHECK(other.locks() == std::vector<std::string>{"b"});
    const std::scoped_lock again(a, b);  // the thread owns them already
  }
  other.eye("HSET", "b", "stranger:1", 1);
  other.eye("PEXPIRE", "b", 60'000);
  CHECK_FALSE(both.try_lock());
  see([&] { return w.locks().empty(); });  // given back in the background
  CHECK(w.code_of_call([] { blocking::multi_lock none({}); }) == errc::invalid_name);
  CHECK(w.code_of_call([&] { blocking::any_of mixed({a, b}); }) == errc::invalid_config);
}

TEST_CASE("std::lock and std::scoped_lock take several in any order without deadlock") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto a = redis.mutex("a"), b = redis.mutex("b"), c = redis.mutex("c");
  std::mutex local;  // beside a lock of the standard library
  int counted = 0;
  crew threads;
  for (int i = 0; i < 3; ++i)
    threads.start([&, i] {
      for (int round = 0; round < 10; ++round) {
        if (i == 0) {
          const std::scoped_lock lock(a, b, local, c);
          ++counted;
        } else if (i == 1) {
          const std::scoped_lock lock(c, local, a, b);
          ++counted;
        } else {
          std::lock(b, c, a);
          const std::lock_guard third(a, std::adopt_lock), first(b, std::adopt_lock), second(c, std::adopt_lock);
          ++counted;
        }
        if (std::try_lock(a, b) == -1) {
          a.unlock();
          b.unlock();
        }
      }
    });
  threads.join();
  CHECK(counted == 30);
  CHECK(w.locks().empty());
}

TEST_CASE("a condition variable waits with a blocking mutex") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  std::condition_variable_any changed;
  int turn = 0;
  crew threads;
  for (int me = 0; me < 2; ++me)
    threads.start([&, me] {
      for (int round = 0; round < 20; ++round) {
        std::unique_lock lock(m);
        changed.wait(lock, [&] { return turn % 2 == me; });
        ++turn;
        changed.notify_all();
      }
    });
  threads.join();
  CHECK(turn == 40);
  std::unique_lock lock(m);
  CHECK(changed.wait_for(lock, 1ms) == std::cv_status::timeout);
  CHECK(m.held());
  std::stop_source stop;
  stop.request_stop();
  CHECK_FALSE(changed.wait(lock, stop.get_token(), [] { return false; }));
  CHECK(m.held());
}
