// SPDX-License-Identifier: BSL-1.0
// The promises of a blocking lock, each for every kind.
#include <atomic>

#include "integration/blocking_world.hpp"
#include "integration/red_world.hpp"
#include "support/fork.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

using boost::system::errc::resource_deadlock_would_occur;

/// Another thread can take it: soon, where a red_lock is given back to the last of its servers.
template <class Lock>
bool free_for_others(Lock& m) {
  return in_thread([&] { return m.try_lock_for(20s) ? (m.unlock(), true) : false; });
}

/// Calls `test(redis, make, lose, heard)` for each kind, with a new client: `make()` gives one more object of the same
/// lock, and `lose()` breaks what is held of it.
template <class Test>
void with_each_kind(Test test) {
  const auto of = [&](auto& w, auto make, auto lose) {
    std::optional<blocking::client> redis(w.settings());
    redis->connect();  // a red_lock's attempt would have little time for it
    test(
        redis, [&] { return make(*redis); }, [&] { lose(*redis); }, *w.heard);
  };
  const auto break_m = [](blocking::client& c) { c.mutex("m").force_unlock(); };
  {
    blocking_world w;
    of(
        w, [](blocking::client& c) { return c.mutex("m"); }, break_m);
    of(
        w, [](blocking::client& c) { return c.fenced_mutex("m"); }, break_m);
    of(
        w, [](blocking::client& c) { return c.fair_mutex("m"); },
        [](blocking::client& c) { c.fair_mutex("m").force_unlock(); });
    of(
        w, [](blocking::client& c) { return c.simple_mutex("m"); },
        [](blocking::client& c) { c.simple_mutex("m").force_unlock(); });
    of(
        w, [](blocking::client& c) { return c.shared_mutex("m"); },
        [](blocking::client& c) { c.shared_mutex("m").force_unlock(); });
    of(
        w,
        [](blocking::client& c) {
          const auto m = c.mutex("m"), other = c.mutex("other");
          return blocking::multi_lock({other, m});
        },
        break_m);
    of(
        w,
        [](blocking::client& c) {
          const auto m = c.mutex("m");
          return blocking::any_of({m});
        },
        break_m);
  }
  for (const auto nested : both) {
    red_world w(3);
    w.founded();
    of(
        w, [nested](blocking::client& c) { return c.red_lock("m", {}, nested); },
        [nested](blocking::client& c) { c.red_lock("m", {}, nested).force_unlock(); });
  }
}

}  // namespace

TEST_CASE("a lock of any kind is tried once by try_lock_until in the past") {
  with_each_kind([](auto&, auto make, auto, recorder& heard) {
    auto m = make();
    using clock = std::chrono::steady_clock;
    CHECK(m.try_lock_until(clock::now() - 1h));
    const auto before = heard.count(kind::not_acquired);
    CHECK(in_vain([&] { return m.try_lock_until(clock::now() - 1h); }));
    CHECK(in_vain([&] { return m.try_lock_until(clock::time_point::min()); }));
    CHECK(heard.count(kind::not_acquired) <= before + 2);
    m.unlock();
    CHECK(free_for_others(m));
  });
}

TEST_CASE("a lock of any kind is its thread's: another one's unlock gives nothing back and is told") {
  with_each_kind([](auto&, auto make, auto, recorder& heard) {
    auto m = make();
    m.lock();
    const auto before = heard.count(kind::foreign_unlock);
    std::thread([&] { m.unlock(); }).join();
    see([&] { return heard.count(kind::foreign_unlock) == before + 1; });
    CHECK(m.held());
    CHECK_FALSE(in_thread([&] { return m.held(); }));
    CHECK(in_vain([&] { return m.try_lock(); }));
    m.unlock();
    CHECK(free_for_others(m));
  });
}

TEST_CASE("a lock of any kind is free when the thread has ended that held it") {
  with_each_kind([](auto&, auto make, auto, recorder& heard) {
    auto m = make();
    std::thread([&] { m.lock(); }).join();
    CHECK(free_for_others(m));
    CHECK(heard.count(kind::foreign_unlock) == 0);
  });
}

TEST_CASE("a lock of any kind that is destroyed is released, and who waits in it gets closed") {
  with_each_kind([](auto&, auto make, auto, recorder&) {
    std::optional m(make());
    auto same = make();
    m->lock();
    const auto stop = m->get_stop_token();
    waiting_threads waiters(*m, 2);
    m.reset();
    CHECK(waiters.closed_of_all() == 2);
    see([&] { return stop.stop_requested(); });
    CHECK(free_for_others(same));
  });
}

TEST_CASE("a lock of any kind is over when its client is destroyed, and who waits gets closed") {
  with_each_kind([](auto& redis, auto make, auto, recorder&) {
    auto m = make();
    m.lock();
    const auto stop = m.get_stop_token();
    crew waiter;
    waiting_thread thread;
    std::atomic<bool> got_closed{false};
    waiter.start([&] {
      thread.begins();
      got_closed = closed([&] { m.lock(); });
    });
    see([&] { return thread.asleep(); });
    redis.reset();
    waiter.join();
    CHECK(got_closed);
    CHECK(stop.stop_requested());
    CHECK_FALSE(m.held());
    CHECK(closed([&] { m.check(); }));
    CHECK(closed([&] { (void)m.try_lock(); }));
    m.unlock();
  });
}

TEST_CASE("a lock of any kind is nobody's in a child process, and the parent's goes on") {
  with_each_kind([](auto& redis, auto make, auto, recorder& heard) {
    std::optional m(make());
    m->lock();
    CHECK(in_child([&] {
      bool good = !m->held() && m->valid_for() == 0ms;
      good &= closed([&] { m->lock(); }) && closed([&] { (void)m->try_lock(); });
      good &= closed([&] { (void)m->try_lock_for(1s); }) && closed([&] { m->check(); }) && closed([&] { m->renew(); });
      good &= closed([&] { (void)m->get_stop_token(); }) && closed([&] { blocking::with_lock(*m, [](auto) {}); });
      m->feed();
      m->unlock();
      auto anew = make();
      good &= closed([&] { anew.lock(); });
      anew.unlock();
      m.reset();
      redis.reset();
      return good;
    }));
    CHECK(m->held());
    CHECK(in_vain([&] { return m->try_lock(); }));
    m->unlock();
    CHECK(free_for_others(*m));
    CHECK(heard.count(kind::lost) == 0);
  });
}

TEST_CASE("a lock of any kind is refused at once on the thread that has to work for it") {
  with_each_kind([](auto& redis, auto make, auto, recorder&) {
    auto m = make();
    const auto inside = [&]() -> asio::awaitable<int> {
      const auto refused = [](auto f) {
        return client_side::code_of_call(f) == make_error_code(resource_deadlock_would_occur);
      };
      co_return refused([&] { m.lock(); }) + refused([&] { (void)m.try_lock(); }) +
          refused([&] { (void)m.try_lock_for(1s); }) + refused([&] { blocking::with_lock(m, [](auto) {}); });
    };
    CHECK(redis->wait(inside()) == 4);
    CHECK(free_for_others(m));
  });
}

TEST_CASE("a lock of any kind that is lost is told by each way there is, and its unlock throws nothing") {
  with_each_kind([](auto&, auto make, auto lose, recorder& heard) {
    auto m = make();
    m.lock();
    m.check();
    const auto stop = m.get_stop_token();
    std::atomic<bool> told{false};
    const std::stop_callback tell(stop, [&] { told = true; });
    lose();
    see([&] { return told.load(); });
    CHECK_FALSE(m.held());
    CHECK(client_side::code_of_call([&] { m.check(); }) == errc::lost);
    m.unlock();
    CHECK(client_side::code_of_call([&] { blocking::with_lock(m, [&](auto) { lose(); }); }) == errc::lost);
    CHECK(client_side::code_of_call([&] { blocking::try_with_lock_for(m, 1s, [&](auto) { lose(); }); }) == errc::lost);
    CHECK(free_for_others(m));
    CHECK(heard.count(kind::foreign_unlock) == 0);
  });
}

TEST_CASE("a condition variable waits with a lock of any kind") {
  with_each_kind([](auto&, auto make, auto, recorder&) {
    auto m = make();
    std::condition_variable_any changed;
    int turn = 0;
    crew threads;
    for (int me = 0; me < 2; ++me)
      threads.start([&, me] {
        for (int round = 0; round < 3; ++round) {
          std::unique_lock lock(m);
          changed.wait(lock, [&] { return turn % 2 == me; });
          ++turn;
          changed.notify_all();
        }
      });
    threads.join();
    CHECK(turn == 6);
    std::unique_lock lock(m);
    CHECK_FALSE(changed.wait_until(lock, std::chrono::steady_clock::now() - 1h, [] { return false; }));
    CHECK(m.held());
  });
}

TEST_CASE("threads that wait for a fair mutex are counted, and served in the order of their arrival") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.fair_mutex("m");
  std::vector<int> served;
  crew threads;
  {
    const std::lock_guard held(m);
    CHECK(m.waiters() == 0);
    for (int n = 0; n < 3; ++n) {
      threads.start([&, n] {
        const std::lock_guard next(m);
        served.push_back(n);
      });
      see([&] { return m.waiters() == static_cast<unsigned>(n + 1); });
    }
  }
  threads.join();
  CHECK(served == std::vector<int>{0, 1, 2});
  CHECK(w.locks().empty());
}

TEST_CASE("std::scoped_lock takes locks of all kinds and clients together, in any order") {
  blocking_world w;
  red_world three(3);
  three.founded();
  blocking::client redis(w.settings()), of_three(three.settings());
  auto plain = redis.mutex("plain");
  auto fenced = redis.fenced_mutex("fenced");
  auto simple = redis.simple_mutex("simple");
  auto fair = redis.fair_mutex("fair");
  auto a = redis.mutex("a"), b = redis.mutex("b"), c = redis.mutex("c");
  blocking::multi_lock both({a, b});
  blocking::any_of one({c});
  auto red = of_three.red_lock("red");
  int counted = 0;
  const auto count_in_turn = [&](auto&... locks) {
    for (int round = 0; round < 5;) try {
        const std::scoped_lock all(locks...);
        ++counted;
        ++round;
      } catch (const error& e) {
        if (e.code() != errc::quorum_failed) throw;  // a busy machine: nothing is held, and it is tried again
      }
  };
  crew threads;
  threads.start([&] { count_in_turn(plain, fenced, simple, fair, both, one, red); });
  threads.start([&] { count_in_turn(red, one, both, fair, simple, fenced, plain); });
  threads.join();
  CHECK(counted == 10);
  CHECK(w.locks().empty());
}
