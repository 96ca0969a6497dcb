// SPDX-License-Identifier: BSL-1.0
// How blocking locks end: with their object, client or thread, in a child process, and in a crowd.
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>

#include "integration/blocking_world.hpp"
#include "support/fork.hpp"
#include "support/sanitized.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

using texts = std::vector<std::string>;

/// What this process has of memory, in bytes.
long long resident() {
  long long all = 0, here = 0;
  std::ifstream("/proc/self/statm") >> all >> here;
  return here * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("a lock object that is destroyed while it is held releases what it holds") {
  blocking_world w;
  blocking::client redis(w.settings());
  {
    auto m = redis.mutex("m");
    m.lock();
    m.lock();
  }
  see([&] { return w.locks().empty(); });
  auto m = redis.mutex("m");
  m.lock();
  SECTION("by another thread") {
    std::thread([gone = std::move(m)] {}).join();
  }
  SECTION("by assignment") { m = redis.mutex("n"); }
  SECTION("in a callback of its own loss") {
    std::optional<blocking::mutex> own(std::move(m));
    std::atomic<bool> ended{false};
    const std::stop_callback lost(own->get_stop_token(), [&] {
      own.reset();
      ended = true;
    });
    own->force_unlock();
    see([&] { return ended.load(); });
  }
  see([&] { return w.locks().empty(); });
  CHECK(w.heard->count(kind::foreign_unlock) == 0);
}

TEST_CASE("threads that wait in a lock object get closed when it is destroyed") {
  blocking_world w;
  blocking::client redis(w.settings());
  std::optional<blocking::mutex> m(redis.mutex("m"));
  auto same = redis.mutex("m");
  same.lock();
  waiting_threads waiters(*m, 4);
  m.reset();
  CHECK(waiters.closed_of_all() == 4);
  same.unlock();
  CHECK(w.locks().empty());
  see([&] { return w.eye("PUBSUB", "CHANNELS", of_locks).array().empty(); });
}

TEST_CASE("threads that wait get closed when the client is destroyed and its holds are released") {
  blocking_world w;
  std::optional<blocking::client> redis(w.settings());
  auto m = redis->mutex("m"), other = redis->mutex("other");
  m.lock();
  other.lock();
  crew waiters;
  waiting_thread threads[9];
  std::atomic<int> got_closed{0};
  const auto never = []() -> asio::awaitable<void> {  // does not end by itself
    asio::steady_timer end_of_time(co_await asio::this_coro::executor, 1h);
    co_await end_of_time.async_wait(asio::use_awaitable);
  };
  for (auto& me : threads)
    waiters.start([&] {
      me.begins();
      got_closed += closed([&] { &me == threads ? redis->wait(never()) : m.lock(); });
    });
  for (const auto& t : threads) see([&] { return t.asleep(); });
  redis.reset();
  waiters.join();
  CHECK(got_closed == 9);
  CHECK(w.locks().empty());
  CHECK_FALSE(m.held());
  CHECK(closed([&] { m.lock(); }));
  CHECK(closed([&] { (void)m.is_locked(); }));
  m.unlock();
  m.unlock();
}

TEST_CASE("a client that is shut down answers closed") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  m.lock();
  crew waiter;
  bool waiter_closed = false;
  waiter.start([&] { waiter_closed = closed([&] { m.lock(); }); });
  w.see_waiters("m");
  SECTION("shutdown") { redis.shutdown(1s); }
  SECTION("drain, whose holder may go on") {
    crew drainer;
    drainer.start([&] { redis.drain(20s); });
    waiter.join();
    m.lock();
    CHECK(m.held());
    m.unlock();
    m.unlock();
  }
  waiter.join();
  CHECK(waiter_closed);
  see([&] { return closed([&] { m.lock(); }); });
  CHECK(w.locks().empty());
  m.unlock();
}

TEST_CASE("a client may be destroyed on its own threads") {
  blocking_world w;
  auto redis = std::make_optional<blocking::client>(w.settings());
  auto m = redis->mutex("m"), other = redis->mutex("other");
  other.lock();
  m.lock();
  std::promise<void> ended;
  const auto end = [&] {
    redis.reset();
    ended.set_value();
  };
  std::optional<std::stop_callback<std::function<void()>>> lost;
  SECTION("of its operations") { asio::post(redis->async().get_executor(), end); }
  SECTION("of its stops") {
    lost.emplace(m.get_stop_token(), end);
    m.force_unlock();
  }
  ended.get_future().wait();
  CHECK_FALSE(other.held());
  CHECK(closed([&] { m.lock(); }));
  see([&] { return w.locks().empty(); });
  see([&] { return w.eye("CLIENT", "LIST", "TYPE", "pubsub").to_string().empty(); });
}

TEST_CASE("a client that is assigned to ends, and its locks with it") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  m.lock();
  redis = blocking::client(w.settings());
  CHECK_FALSE(m.held());
  CHECK(closed([&] { m.lock(); }));
  auto same = redis.mutex("m");
  CHECK(same.try_lock());  // was released, and is another client's
  m.unlock();
  CHECK(same.held());
}

TEST_CASE("a lock object may be destroyed on the thread of its client") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto same = redis.mutex("m");
  std::optional<blocking::mutex> m(redis.mutex("m"));
  m->lock();
  crew waiter;
  waiting_thread thread;
  std::atomic<bool> got_closed{false};
  waiter.start([&] {
    thread.begins();
    got_closed = closed([&] { m->lock(); });
  });
  see([&] { return thread.asleep(); });
  const auto end = [&]() -> asio::awaitable<void> { co_return m.reset(); };
  redis.wait(end());
  waiter.join();
  CHECK(got_closed);
  CHECK(in_thread([&] { return same.try_lock_for(20s); }));
}

TEST_CASE("the threads of a client have the signal mask of their maker") {
  blocking_world w;
  const auto that_block = [](int signal) {
    int threads = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream status(task.path() / "status");
      std::string word, mask;
      while (status >> word)
        if (word == "SigBlk:") status >> mask;
      threads += static_cast<int>(std::stoull("0" + mask, nullptr, 16) >> (signal - 1) & 1);
    }
    return threads;
  };
  const auto others = that_block(SIGUSR2);  // a sanitizer's
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  std::optional<blocking::client> redis(w.settings());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(that_block(SIGUSR2) == others + 2);
}

TEST_CASE("the end of a client closes what a callback of a stop waits for and waits for the callback") {
  blocking_world w;
  std::optional<blocking::client> redis(w.settings());
  auto m = redis->mutex("m"), other = redis->mutex("other");
  other.lock();
  m.lock();
  waiting_thread callback;
  std::atomic<bool> got_closed{false}, over{false};
  const std::stop_callback lost(m.get_stop_token(), [&] {
    callback.begins();
    got_closed = closed([&] { other.lock(); });
    over = true;
  });
  m.force_unlock();
  see([&] { return callback.asleep(); });
  redis.reset();
  CHECK(over);
  CHECK(got_closed);
  CHECK(w.locks().empty());
}

TEST_CASE("the child that a callback of a stop has forked ends with its callback") {
  if (thread_sanitized) skip("ThreadSanitizer allows no end of a child's threads");
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m"), other = redis.mutex("other");
  m.lock();
  other.lock();
  std::promise<pid_t> forked;
  const std::stop_callback lost(m.get_stop_token(), [&] {
    if (const auto child = ::fork(); child != 0) forked.set_value(child);
  });
  std::fflush(nullptr);  // the child ends by exit()
  m.force_unlock();
  const auto child = forked.get_future().get();
  REQUIRE(child > 0);
  pid_t reaped = 0;
  see([&] { return (reaped = ::waitpid(child, nullptr, WNOHANG)) != 0; });
  CHECK(reaped == child);
  CHECK(other.held());
}

TEST_CASE("an observer that locks while a client ends is refused and nothing hangs") {
  blocking_world w;
  struct locking final : observer {
    void on(const event& e) noexcept override {
      if (e.kind == kind::closed) refused += client_side::code_of_call(lock).failed();
    }
    std::function<void()> lock;
    std::atomic<int> refused{0};
  };
  const auto watching = std::make_shared<locking>();
  auto redis = std::make_optional<blocking::client>(w.settings_with([&](config& c) { c.observer = watching; }));
  auto m = redis->mutex("m"), other = redis->mutex("other");
  watching->lock = [&] { (void)other.try_lock(); };
  m.lock();
  SECTION("on its own thread") {
    asio::post(redis->async().get_executor(), [&] { redis.reset(); });
  }
  SECTION("on another") { redis.reset(); }
  see([&] { return watching->refused == 1; });
  see([&] { return w.locks().empty(); });
}

TEST_CASE("what a thread holds when it ends is released") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  std::thread([&] {
    auto own = redis.mutex("own");
    m.lock();
    m.lock();
  }).join();
  CHECK(m.try_lock_for(10s));
  m.unlock();
  CHECK(w.locks().empty());
  CHECK(w.heard->count(kind::foreign_unlock) == 0);
}

TEST_CASE("locks of thread_local objects are given back and taken when their thread ends") {
  blocking_world w;
  static std::optional<blocking::client> redis;
  redis.emplace(w.settings());
  struct late {
    blocking::mutex m = redis->mutex("late"), next = redis->mutex("next");
    ~late() {
      m.unlock();
      next.lock();
    }
  };
  std::thread([] {
    thread_local late before;  // destroyed after what notes the thread's holds
    before.m.lock();
  }).join();
  see([&] { return w.locks().empty(); });
  redis.reset();
}

TEST_CASE("what the destructor of a thread_local object locks is given back as well") {
  blocking_world w;
  blocking::client redis(w.settings());
  static std::optional<blocking::mutex> kept, given_back;
  kept.emplace(redis.mutex("kept"));
  given_back.emplace(redis.mutex("given_back"));
  struct late {
    ~late() {
      kept->lock();
      kept->lock();
      kept->unlock();
      const std::lock_guard lock(*given_back);
    }
  };
  auto first = redis.mutex("first");
  std::thread([&] {
    thread_local late before;  // destroyed after what notes the thread's holds
    (void)&before;
    const std::lock_guard lock(first);
  }).join();
  CHECK(kept->try_lock_for(20s));
  kept->unlock();
  CHECK(w.heard->count(kind::foreign_unlock) == 0);
  see([&] { return w.locks().empty(); });
  kept.reset();
  given_back.reset();
}

TEST_CASE("the child of a process with a blocking client holds nothing and sends nothing") {
  blocking_world w;
  std::optional<blocking::client> redis(w.settings_with([](config& c) { c.ttl = 900ms; }));
  std::optional<blocking::mutex> m(redis->mutex("m"));
  auto other = redis->mutex("other");
  std::unique_lock lock(*m);
  // Other threads are at work in the locks when the process forks.
  std::atomic<bool> enough{false};
  crew busy;
  for (int i = 0; i < 2; ++i)
    busy.start([&] {
      while (!enough) {
        const std::lock_guard locked(other);
        (void)other.held();
      }
    });
  for (int i = 0; i < 10; ++i) {
    const auto child_says = in_child([&] {
      bool good = !m->held() && m->valid_for() == 0ms;
      good &= closed([&] { m->lock(); }) && closed([&] { (void)m->try_lock(); }) && closed([&] { m->check(); });
      good &= closed([&] { (void)m->get_stop_token(); }) && closed([&] { m->renew(); });
      good &= closed([&] { (void)m->is_locked(); }) && closed([&] { other.lock(); });
      good &= closed([&] { redis->connect(); }) && closed([&] { redis->shutdown(1s); });
      good &= closed([&] { blocking::with_lock(*m, [](auto) {}); });
      auto anew = redis->mutex("new");
      good &= closed([&] { anew.lock(); });
      m->feed();
      lock.unlock();
      m.reset();
      redis.reset();
      return good;
    });
    CHECK(child_says);
    CHECK(m->held());
  }
  const auto in_section =
      in_child([&] { return closed([&] { blocking::with_lock(other, [&](auto) { return 1; }); }); });
  CHECK(in_section);
  enough = true;
  busy.join();
  see([&] { return m->valid_for() < 650ms; });
  see([&] { return m->valid_for() > 800ms; });  // renewed, by the parent
  lock.unlock();
  CHECK(w.locks().empty());
  CHECK(w.heard->count(kind::lost) == 0);
  CHECK(w.heard->count(kind::outage) == 0);
}

TEST_CASE("a section that forks ends as closed in the child and goes on in the parent") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  std::optional<forked> child;
  const auto parent = ::getpid();
  try {
    blocking::with_lock(m, [&](auto) { child.emplace([] { return true; }); });
  } catch (...) {
    if (::getpid() != parent) ::_exit(1);
    throw;
  }
  CHECK(child->went_well());
  CHECK(w.locks().empty());
}

TEST_CASE("a child process may have a blocking client of its own") {
  if (thread_sanitized) skip("ThreadSanitizer allows no threads in the child of a process with threads");
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  const std::lock_guard lock(m);
  CHECK(in_child([&] {
    blocking::client own(w.settings());
    auto same = own.mutex("m"), free = own.mutex("free");
    const bool busy = !same.try_lock();
    const std::lock_guard locked(free);
    return busy && free.held();
  }));
  CHECK(m.held());
  CHECK(w.locks() == texts{"m"});  // the child's client has released its own
}

TEST_CASE("threads come and go by the thousand and leave nothing") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  const auto come_and_go = [&](int hundreds) {
    for (int i = 0; i < hundreds; ++i) {
      crew threads;
      for (int n = 0; n < 100; ++n)
        threads.start([&, n] {
          if (std::unique_lock lock(m); n % 10 == 0) (void)m.get_stop_token();
          auto own = redis.mutex("own" + std::to_string(n));
          own.lock();  // its object ends first
        });
      threads.join();
    }
  };
  come_and_go(2);
  const auto before = resident();
  come_and_go(10);
  // The sanitizers keep what is freed, and have their own ways to find a leak.
  if (!address_sanitized && !thread_sanitized) CHECK(resident() - before < 2'000'000);
  see([&] { return w.locks().empty(); });
}

TEST_CASE("64 threads lock eight names at once while locks are lost and count exactly") {
  constexpr int threads = 64, names = 8;
  const int rounds = thread_sanitized ? 3 : 6;
  blocking_world w;
  blocking::client redis(w.settings_with([&](config& c) { c.poll_cap = 50ms; }));
  std::deque<blocking::mutex> shared;
  for (int n = 0; n < names; ++n) shared.push_back(redis.mutex("name" + std::to_string(n)));
  long counted[names] = {};        // what each lock guards: ordinary variables on purpose
  std::atomic<unsigned> order{0};  // what another's work was before its lock was lost is seen by who takes that
  std::atomic<int> losses{0};
  std::mutex of_eye;
  raw_client eye(w.server);

  crew all;
  for (int me = 0; me < threads; ++me)
    all.start([&, me] {
      std::mt19937 dice(static_cast<unsigned>(me));
      std::deque<blocking::mutex> own;  // half of the threads have objects of their own
      if (me % 2 == 0)
        for (int n = 0; n < names; ++n) own.push_back(redis.mutex("name" + std::to_string(n)));
      auto& m = own.empty() ? shared : own;
      for (int round = 0; round < rounds; ++round) {
        const auto work = [&] {
          order.load(std::memory_order_acquire);
          for (auto& c : counted) ++c;
          // Then one of them is lost, now and then: after the work, since who had none could not count exactly.
          if (dice() % 4 != 0) return;
          const auto victim = dice() % names;
          const auto lost = m[victim].get_stop_token();
          ++losses;
          order.fetch_add(1, std::memory_order_release);
          if (dice() % 2 == 0) {
            m[victim].force_unlock();
          } else {
            const std::lock_guard one_at_a_time(of_eye);
            eye("DEL", "name" + std::to_string(victim));
            // The client must know before another of its threads has it, which would not be asked for in Redis.
            const auto said = client_side::code_of_call([&] { m[victim].renew(); });
            if (said != errc::lost) throw std::runtime_error("not lost: " + said.message());
          }
          see([&] { return lost.stop_requested(); });
        };
        if (me % 4 < 2) {
          const std::scoped_lock lock(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7]);
          work();
        } else {
          const std::scoped_lock lock(m[7], m[2], m[5], m[0], m[3], m[6], m[1], m[4]);
          work();
        }
      }
    });
  all.join();
  for (const auto c : counted) CHECK(c == threads * rounds);
  CHECK(losses > 0);
  CHECK(w.heard->count(kind::foreign_unlock) == 0);
  see([&] { return w.locks().empty(); });
}

TEST_CASE("threads of several clients lock names together while anybody breaks the locks at any time") {
  const int rounds = thread_sanitized ? 5 : 20;
  blocking_world w;
  const auto quick = w.settings_with([](config& c) { c.poll_cap = 50ms; });
  std::deque<blocking::client> clients;
  for (int i = 0; i < 2; ++i) clients.emplace_back(quick);
  std::atomic<bool> enough{false};
  std::atomic<int> sections{0}, lost{0};
  crew workers, breaker;
  for (int me = 0; me < 8; ++me)
    workers.start([&, me] {
      auto& redis = clients[static_cast<std::size_t>(me) % clients.size()];
      auto a = redis.mutex("a"), b = redis.mutex("b");
      auto c = redis.fenced_mutex("c");
      for (int round = 0; round < rounds; ++round) {
        try {
          if (me % 4 < 2) {
            const std::scoped_lock lock(a, b, c);
            a.check();
          } else {
            const std::scoped_lock lock(c, b, a);
            blocking::with_lock(c, [&](std::stop_token) { c.check(); });
          }
        } catch (const error& e) {
          if (e.code() != errc::lost) throw;
          ++lost;
        }
        ++sections;
      }
    });
  breaker.start([&] {
    std::mt19937 dice(7);
    raw_client eye(w.server);
    blocking::client other(quick);
    while (!enough) {
      const std::string name(1, static_cast<char>('a' + dice() % 3));
      if (dice() % 2 == 0)
        eye("DEL", name);
      else
        other.mutex(name).force_unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(dice() % 5000));
    }
  });
  workers.join();
  enough = true;
  breaker.join();
  CHECK(sections == 8 * rounds);
  CHECK(w.heard->count(kind::foreign_unlock) == 0);
  see([&] { return w.locks().empty(); });
}
