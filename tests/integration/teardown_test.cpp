// SPDX-License-Identifier: BSL-1.0
// Ends that meet: a client that outlives its context, and threads that let go of their leases, clients and callers
// while a context is destroyed by another. Run under AddressSanitizer and ThreadSanitizer.
#include <atomic>
#include <barrier>
#include <boost/asio/executor_work_guard.hpp>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr int rounds = 250;  // of a race that is lost in one of a hundred or so

/// A client with a context of its own, and leases that it has given.
struct stage {
  explicit stage(const world& w, int leases = 8)
      : io(std::make_unique<asio::io_context>()), redis(std::in_place, io->get_executor(), w.settings()) {
    for (int i = 0; i < leases; ++i) held.push_back(run(*io, redis->mutex("m" + std::to_string(i)).lock()));
    io->restart();
  }
  std::unique_ptr<asio::io_context> io;
  std::optional<client> redis;
  std::vector<lease> held;
};

/// Runs `theirs` on another thread and `ours` here, both from the same moment on.
template <class Theirs, class Ours>
void at_once(Theirs theirs, Ours ours) {
  std::barrier start(2);
  std::thread other([&] {
    start.arrive_and_wait();
    theirs();
  });
  start.arrive_and_wait();
  ours();
  other.join();
}

/// A context that runs on a thread of its own until this ends.
struct running_context {
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> open{io.get_executor()};
  std::thread thread{[this] { io.run(); }};
  ~running_context() {
    open.reset();
    thread.join();
  }
};

/// How often callers have called, and were answered; how many of them were told that the client is closed.
struct tally {
  std::atomic<int> called{0}, answered{0}, closed{0};
};

asio::awaitable<void> keeps_calling(holdfast::mutex m, tally& count) {
  for (error_code ended; ended != errc::shutting_down; ++count.answered) {
    ++count.called;
    const auto got = co_await as_result(m.try_lock());
    ended = got ? error_code() : got.error();
  }
  ++count.closed;
}

void remove_leases(world& w) { w.eye("FLUSHALL"); }

}  // namespace

TEST_CASE("a client that outlives its io_context is closed") {
  world w;
  w.eye("HSET", "busy", "stranger:1", 1);
  w.eye("PEXPIRE", "busy", 60'000);
  auto s = std::make_optional<stage>(w, 1);
  const auto m = s->redis->mutex("busy");
  bool asked = false;
  SECTION("idle") {}
  SECTION("with a waiter") {
    auto waits = [](holdfast::mutex busy, bool& began) -> asio::awaitable<void> {
      began = true;
      auto held = co_await busy.lock();
    };
    asio::co_spawn(*s->io, waits(m, asked), asio::detached);
    while (w.eye("PUBSUB", "CHANNELS", of_locks).strings().empty()) s->io->run_one_for(1ms);
  }
  SECTION("with a command that is not answered") {
    w.server.stop();
    asio::co_spawn(*s->io, as_result(m.is_locked()), asio::detached);
    s->io->poll();
  }
  s->io.reset();
  w.server.cont();
  CHECK_FALSE(s->held[0].held());
  CHECK(s->held[0].state() == lease_state::lost);
  for (const auto code : {w.code_of(m.lock()), w.code_of(m.is_locked()), w.code_of(s->redis->connect()),
                          w.code_of(s->redis->mutex("new").try_lock())})
    CHECK(code == errc::shutting_down);
  for (const auto code :
       {w.code_of(s->held[0].renew()), w.code_of(s->held[0].unlock()), w.code_of(s->redis->shutdown(1s))})
    CHECK(code == errc::closed);
  CHECK(w.run(s->held[0].lost()) == errc::closed);
  s->held[0].feed();
  CHECK_FALSE(s->redis->get_executor());
  SECTION("destroyed") {}
  SECTION("replaced") { *s->redis = w.make(); }
  SECTION("after its leases") { s->held.clear(); }
  SECTION("moved") { auto elsewhere = std::move(*s->redis); }
}

TEST_CASE("a client that outlives its io_context may be used from another context at the same address") {
  world w;
  std::optional<asio::io_context> io(std::in_place);
  client redis(io->get_executor(), w.settings());
  auto held = run(*io, redis.mutex("m").lock());
  io.emplace();
  error_code got;
  try {
    (void)run(*io, redis.mutex("m").lock());
  } catch (const error& e) {
    got = e.code();
  }
  CHECK(got == errc::shutting_down);
}

TEST_CASE("leases that die on another thread while their context is destroyed touch nothing of it") {
  world w;
  enum class client_ends { before, after, before_and_its_context_runs };
  for (const auto when : {client_ends::before, client_ends::after, client_ends::before_and_its_context_runs})
    for (int round = 0; round < rounds; ++round) {
      stage s(w);
      if (when != client_ends::after) s.redis.reset();
      if (when == client_ends::before_and_its_context_runs) drain(*s.io);
      at_once([&] { s.held.clear(); }, [&] { s.io.reset(); });
      remove_leases(w);
    }
}

TEST_CASE("a client that dies on another thread while its context is destroyed touches nothing of it") {
  world w;
  for (int round = 0; round < rounds; ++round) {
    stage s(w);
    at_once([&] { s.redis.reset(); }, [&] { s.io.reset(); });
    remove_leases(w);
  }
}

TEST_CASE("leases that die on another thread while their client closes are forgotten") {
  world w;
  for (int round = 0; round < rounds; ++round) {
    stage s(w);
    s.redis.reset();
    at_once([&] { s.held.clear(); }, [&] { drain(*s.io); });
    CHECK(w.keys().empty());
  }
}

TEST_CASE("a lease that was told of its loss may die on another thread") {
  world w;
  for (int round = 0; round < rounds; ++round) {
    stage s(w, 2);
    std::atomic<int> told = 0;
    for (auto& l : s.held) asio::co_spawn(*s.io, l.lost(), [&told](std::exception_ptr, error_code) { ++told; });
    s.io->poll();
    s.redis.reset();
    at_once(
        [&] {
          while (s.held.back().state() != lease_state::lost) std::this_thread::yield();
          s.held.clear();
        },
        [&] {
          drain(*s.io);
          s.io.reset();
        });
    CHECK(told == 2);
  }
}

TEST_CASE("whoever calls from another context is answered when the client's context is destroyed") {
  constexpr int callers = 4;
  world w;
  tally count;
  running_context mine;
  for (int round = 0; round < rounds; ++round) {
    stage s(w, 0);
    for (int i = 0; i < callers; ++i)
      asio::co_spawn(mine.io, keeps_calling(s.redis->mutex("m" + std::to_string(i)), count), asio::detached);
    s.io->run_for(1ms);
    s.io.reset();
    s.redis.reset();
  }
  const auto limit = std::chrono::steady_clock::now() + 20s;
  while (count.closed != callers * rounds && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  CHECK(count.closed == callers * rounds);
  CHECK(count.answered == count.called);
}

TEST_CASE("a section is told at once when its client's context is destroyed") {
  world w;
  auto theirs = std::make_unique<asio::io_context>();
  client redis(theirs->get_executor(), w.settings());
  std::optional<error_code> ended;
  bool began = false;
  auto body = [&began](lease&) -> asio::awaitable<void> {
    began = true;
    asio::steady_timer never(co_await asio::this_coro::executor, 1h);
    co_await never.async_wait(asio::use_awaitable);
  };
  asio::co_spawn(w.io, as_result(with_lock(redis.mutex("m"), body)),
                 [&ended](std::exception_ptr, const result<void>& r) { ended = r ? error_code() : r.error(); });
  SECTION("while it runs") {
    while (!began) {
      w.pass(1ms);
      theirs->run_one_for(1ms);
    }
    for (int i = 0; i < 10; ++i) theirs->poll();
  }
  SECTION("while it begins") {
    while (!began) {
      if (w.pass(1ms); began) break;
      theirs->run_one_for(1ms);
    }
  }
  theirs.reset();
  w.until([&] { return ended.has_value(); });
  CHECK(*ended == errc::closed);
}

TEST_CASE("coroutines that wait end with their own context while the client's lives") {
  world w;
  auto redis = w.make();
  auto busy = w.run(redis.mutex("busy").lock());
  for (int round = 0; round < rounds; ++round) {
    auto mine = std::make_unique<asio::io_context>();
    auto destroyed = std::make_shared<int>();
    auto waits = [](holdfast::mutex m, std::shared_ptr<int>) -> asio::awaitable<void> {
      asio::steady_timer of_mine(co_await asio::this_coro::executor, 1h);
      auto held = co_await m.lock();
    };
    auto watches = [](lease& of, std::shared_ptr<int>) -> asio::awaitable<void> {
      asio::steady_timer of_mine(co_await asio::this_coro::executor, 1h);
      co_await of.lost();
    };
    asio::co_spawn(*mine, waits(redis.mutex("busy"), destroyed), asio::detached);
    asio::co_spawn(*mine, waits(redis.mutex("free" + std::to_string(round)), destroyed), asio::detached);
    asio::co_spawn(*mine, watches(busy, destroyed), asio::detached);
    mine->poll();
    at_once([&] { mine.reset(); }, [&] { w.pass(1ms); });
    CHECK(destroyed.use_count() == 1);
  }
  w.run(busy.unlock());
  w.until([&] { return w.keys().empty(); });
}

TEST_CASE("two contexts whose callers wait for each other's clients may be destroyed at once") {
  world w;
  w.eye("HSET", "busy", "stranger:1", 1);
  w.eye("PEXPIRE", "busy", 600'000);
  for (int round = 0; round < rounds; ++round) {
    auto a = std::make_unique<asio::io_context>(), b = std::make_unique<asio::io_context>();
    client of_a(a->get_executor(), w.settings()), of_b(b->get_executor(), w.settings());
    auto waits = [](holdfast::mutex m) -> asio::awaitable<void> { auto held = co_await m.lock(); };
    for (int i = 0; i < 3; ++i) {
      asio::co_spawn(*a, waits(of_b.mutex("busy")), asio::detached);
      asio::co_spawn(*b, waits(of_a.mutex("busy")), asio::detached);
    }
    for (int i = 0; i < 20; ++i) a->poll(), b->poll();
    at_once([&] { a.reset(); }, [&] { b.reset(); });
  }
}
