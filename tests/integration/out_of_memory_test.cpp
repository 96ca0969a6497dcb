// SPDX-License-Identifier: BSL-1.0
// What may not throw, in a process that has no memory left.
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "integration/world.hpp"
#include "support/no_memory.hpp"
#include "support/sanitized.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

struct starved_world : world {
  starved_world() {
    if (address_sanitized || thread_sanitized) skip("the sanitizer needs address space of its own");
  }
  client make_short_lived() {
    return make([](config& c) { c.ttl = 300ms; });
  }
};

}  // namespace

TEST_CASE("a lease that is dropped without memory is given back when its next renewal would be due") {
  starved_world w;
  auto redis = w.make_short_lived();
  auto held = w.run(redis.mutex("m").lock());
  {
    const no_memory exhausted;
    held = lease();
  }
  CHECK(held.state() == lease_state::empty);
  w.until([&] { return w.heard->count(kind::released) == 1; });
  CHECK(w.keys().empty());
  CHECK(w.heard->count(kind::lost) == 0);
  w.run(redis.shutdown(1s));
  CHECK(w.keys().empty());
}

TEST_CASE("leases that are dropped without memory are forgotten with their client") {
  starved_world w;
  auto redis = w.make();
  auto first = w.run(redis.mutex("a").lock()), second = w.run(redis.mutex("b").lock());
  {
    const no_memory exhausted;
    first = lease();
    second = lease();
  }
  w.run(redis.shutdown(1s));
  CHECK(w.keys().empty());
}

TEST_CASE("a client that goes out of scope without memory ends its leases at once and its keys with their ttl") {
  starved_world w;
  std::optional<client> redis(w.make_short_lived());
  auto held = w.run(redis->mutex("m").lock());
  {
    const no_memory exhausted;
    redis.reset();
    CHECK_FALSE(held.held());
  }
  CHECK(w.code_of(held.unlock()) == errc::closed);
  auto other = w.make();
  w.run(w.run(other.mutex("m").lock()).unlock());
}

TEST_CASE("a feed that found no memory is made good by the next") {
  starved_world w;
  auto redis = w.make([](config& c) { c.ttl = 3s; });
  auto held = w.run(redis.mutex("m").lock({.max_hold = 1ms}));
  w.until([&] { return held.valid_for() < 1900ms; });  // a renewal is due after 1 s: there is none
  {
    const no_memory exhausted;
    held.feed();
  }
  held.feed();
  w.until([&] { return held.valid_for() > 2s; });
  CHECK(held.held());
}

TEST_CASE("no allocation that fails where a lease ends keeps the lock or the client from going on") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  enum class end_of_lease { outside_of_a_handler, in_a_handler, on_another_thread, with_its_client };
  world w;
  for (const auto how : {end_of_lease::outside_of_a_handler, end_of_lease::in_a_handler,
                         end_of_lease::on_another_thread, end_of_lease::with_its_client}) {
    bool failed = true;
    std::size_t n = 0;
    for (; failed; ++n) {
      INFO("end " << static_cast<int>(how) << ", allocation " << n << " fails");
      std::optional redis(w.make([](config& s) { s.ttl = 300ms; }));
      auto held = w.run(redis->mutex("m").lock());
      w.io.restart();
      w.io.poll();
      const auto end_it = [&] {
        const failing_allocations here(n);
        if (how == end_of_lease::with_its_client) redis.reset();
        held = lease();
        failed = here.happened();
      };
      switch (how) {
        case end_of_lease::in_a_handler:
          asio::post(w.io, end_it);
          w.io.poll();
          break;
        case end_of_lease::on_another_thread: std::thread(end_it).join(); break;
        default: end_it();
      }
      if (redis) w.run(w.run(redis->mutex("m").lock()).unlock());
      w.until([&] { return w.keys().empty(); });
      redis.reset();
      drain(w.io, 10s);
    }
    CHECK(n > 1);
  }
}

namespace {

/// Clients of a server, in an io_context of their own.
struct crowd : client_side {
  explicit crowd(const world& w) : of(w) {}
  std::string url() const override { return of.url(); }
  const world& of;
};

/// Counts a call until its coroutine has ended. Asio destroys one in which it finds no memory to begin an operation,
/// and calls nobody.
struct running_call {
  explicit running_call(int& all) : of(all) { ++of; }
  running_call(const running_call&) = delete;
  running_call& operator=(const running_call&) = delete;
  ~running_call() { --of; }
  int& of;
};

asio::awaitable<void> counted(std::unique_ptr<running_call>, asio::awaitable<void> op) { co_await std::move(op); }

struct starved_client {
  crowd& of;
  client redis;
  lease held{};
  bool over = false;
  int running = 0;

  void spawn(asio::awaitable<void> op) {
    asio::co_spawn(of.io, counted(std::make_unique<running_call>(running), std::move(op)),
                   [this](std::exception_ptr) { over = true; });
  }
  void lock_and_unlock() {
    of.run(redis.connect());
    unlock(of.run(redis.mutex("m").lock()));
  }
  /// A TTL of 300 ms leaves 60 ms for an answer, which a busy machine may exceed. Then the release goes on.
  void unlock(lease taken) {
    const auto code = of.code_of(taken.unlock());
    CHECK((!code || code == errc::unconfirmed));
  }
  void lock() {
    lock_and_unlock();
    held = of.run(redis.mutex("m").lock());
  }
};

template <class Lock>
asio::awaitable<void> lock_and_unlock(Lock any) {
  auto held = co_await any.lock();
  co_await held.unlock();
}

/// Plays `act` once for each allocation in it, which fails. Then there is memory again: what was begun must end, the
/// client must work, and no key may stay.
void starve(world& w, const std::function<void(starved_client&)>& prepare,
            const std::function<void(starved_client&)>& act) {
  bool failed = true;
  std::size_t n = 0;
  for (; failed; ++n) {
    INFO("allocation " << n << " fails");
    const guarded_blocks guard;
    crowd all(w);
    starved_client c{all, all.make([](config& s) {
                       s.ttl = 300ms;
                       s.observer.reset();  // its own memory is not in question
                       s.quiet = true;
                       s.connect_timeout = 200ms;
                     })};
    prepare(c);
    {
      const auto end = std::chrono::steady_clock::now() + 10s;
      const failing_allocations here(n, 1, failing_allocations::of::everybody_but_asio);
      const auto step = [&](auto what) {
        try {
          what();
        } catch (const std::bad_alloc&) {
        }
      };
      step([&] { act(c); });
      all.io.restart();
      while (!c.over && !here.happened() && std::chrono::steady_clock::now() < end)
        step([&] { all.io.run_one_for(1ms); });
      failed = here.happened();
    }
    c.held = {};
    for (const auto* name : {"m", "after"}) {
      started<lease> next(all, c.redis.mutex(name).lock());
      all.until([&] { return next.answer.has_value(); });
      REQUIRE(next.succeeded());
      c.unlock(std::move(next.answer->value()));
    }
    all.until([&] { return c.running == 0; });  // not because the client ends
    all.until([&] { return w.locks().empty(); });
    all.run(c.redis.shutdown(1s));
    drain(all.io, 10s);
  }
  CHECK(n > 1);
}

}  // namespace

TEST_CASE("after any allocation that failed a client works on and leaves no key") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  world w;
  const auto nothing = [](starved_client&) {};
  const auto connected = [](starved_client& c) { c.lock_and_unlock(); };
  const auto holds = [](starved_client& c) { c.lock(); };
  const auto held_by_another = [&w](starved_client& c) {
    c.lock_and_unlock();
    w.eye("HSET", "m", "stranger:1", "1");
    w.eye("PEXPIRE", "m", "20");
  };
  const auto locks = [](starved_client& c) { c.spawn(lock_and_unlock(c.redis.mutex("m"))); };
  SECTION("as it connects, locks and unlocks") { starve(w, nothing, locks); }
  SECTION("as it locks and unlocks") { starve(w, connected, locks); }
  SECTION("as it waits for a lock") { starve(w, held_by_another, locks); }
  SECTION("as it waits for one of several") {
    starve(w, held_by_another, [](starved_client& c) { c.spawn(lock_and_unlock(any_of({c.redis.mutex("m")}))); });
  }
  SECTION("as it waits for several") {
    starve(w, held_by_another, [](starved_client& c) {
      c.spawn(lock_and_unlock(multi_lock({c.redis.mutex("m"), c.redis.mutex("n")})));
    });
  }
  SECTION("as it unlocks what others wait for") {
    starve(w, holds, [&](starved_client& c) {
      locks(c);
      c.held = {};
    });
  }
  SECTION("as it renews") {
    starve(w, holds, [](starved_client& c) { c.spawn(c.held.renew()); });
  }
  SECTION("as the watchdog renews") {
    starve(w, holds, [](starved_client& c) {
      const auto pause = std::make_shared<asio::steady_timer>(c.of.io, 150ms);
      pause->async_wait([&c, pause](const error_code&) { c.over = true; });
    });
  }
  SECTION("as its connections are lost") {
    const auto cut = [&](starved_client& c) {
      c.lock();
      w.eye("CLIENT", "KILL", "TYPE", "normal");
    };
    starve(w, cut, [](starved_client& c) { c.spawn(lock_and_unlock(c.redis.mutex("after"))); });
  }
}
