// SPDX-License-Identifier: BSL-1.0
// An io_context that is stopped and destroyed in the midst of things, as after Ctrl-C: the coroutines that wait are
// destroyed with it.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>
#include <memory>
#include <optional>

#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// Counts the frames that are alive.
struct frame {
  explicit frame(int& count) : alive(&count) { ++*alive; }
  frame(const frame&) = delete;
  ~frame() { --*alive; }
  int* alive;
};

asio::awaitable<void> waits_with_a_client_of_its_own(config c, int& alive) {
  const frame here(alive);
  client redis(co_await asio::this_coro::executor, std::move(c));
  auto held = co_await redis.mutex("busy").lock();
  FAIL("the lock was busy");
}

asio::awaitable<void> waits_for_the_loss(client& redis, int& alive) {
  const frame here(alive);
  auto held = co_await redis.mutex("a").lock();
  co_await held.lost();
  FAIL("the lock was not lost");
}

asio::awaitable<void> shuts_down(client& redis, int& alive) {
  const frame here(alive);
  co_await redis.shutdown(1h);
  FAIL("the server had stopped");
}

asio::awaitable<void> has_a_section(client& redis, int& alive) {
  const frame here(alive);
  auto body = [&alive](lease&) -> asio::awaitable<void> {
    const frame inner(alive);
    asio::steady_timer never(co_await asio::this_coro::executor, 1h);
    co_await never.async_wait(asio::use_awaitable);
  };
  co_await with_lock(redis.mutex("section"), body);
}

asio::awaitable<void> has_a_section_under_its_lease(client& redis, int& alive) {
  const frame here(alive);
  auto held = co_await redis.mutex("lent").lock();
  auto body = [&alive](lease&) -> asio::awaitable<void> {
    const frame inner(alive);
    asio::steady_timer never(co_await asio::this_coro::executor, 1h);
    co_await never.async_wait(asio::use_awaitable);
  };
  co_await with_lock(held, body);
}

}  // namespace

TEST_CASE("a destroyed io_context destroys the coroutines that wait, whoever owns their client") {
  world w;
  int alive = 0;
  w.eye("HSET", "busy", "stranger:1", 1);
  w.eye("PEXPIRE", "busy", 60'000);
  {
    asio::io_context io;
    client outside(io.get_executor(), w.settings()), silent(io.get_executor(), w.settings());
    auto kept = test::run(io, silent.mutex("kept").lock());
    io.restart();
    asio::co_spawn(io, waits_with_a_client_of_its_own(w.settings(), alive), asio::detached);
    asio::co_spawn(io, waits_for_the_loss(outside, alive), asio::detached);
    asio::co_spawn(io, has_a_section(outside, alive), asio::detached);
    asio::co_spawn(io, has_a_section_under_its_lease(outside, alive), asio::detached);
    while (w.eye("EXISTS", "a", "section", "lent") != 3 || w.eye("PUBSUB", "CHANNELS", of_locks).strings().empty())
      io.run_one_for(1ms);
    w.server.stop();
    asio::co_spawn(io, shuts_down(silent, alive), asio::detached);
    io.poll();
    CHECK(alive == 7);
  }
  CHECK(alive == 0);
  w.server.cont();
}

TEST_CASE("a release that is under way when its io_context is destroyed leaves nothing in memory") {
  world w;
  asio::io_context io;
  {
    client redis(io.get_executor(), w.settings());
    auto held = test::run(io, redis.mutex("m").lock());
    w.server.stop();
    io.restart();
  }
  io.poll();
  w.server.cont();
}

TEST_CASE("a cancellation signal may outlive the context of what it cancels") {
  world w;
  w.eye("HSET", "busy", "stranger:1", 1);
  w.eye("PEXPIRE", "busy", 60'000);
  asio::cancellation_signal of_lock, of_section;
  {
    asio::io_context io;
    client redis(io.get_executor(), w.settings());
    bool began = false;
    auto body = [&began](lease&) -> asio::awaitable<void> {
      began = true;
      asio::steady_timer never(co_await asio::this_coro::executor, 1h);
      co_await never.async_wait(asio::use_awaitable);
    };
    asio::co_spawn(io, redis.mutex("busy").lock(),
                   asio::bind_cancellation_slot(of_lock.slot(), [](std::exception_ptr, lease) {}));
    asio::co_spawn(io, with_lock(redis.mutex("free"), body),
                   asio::bind_cancellation_slot(of_section.slot(), [](std::exception_ptr) {}));
    while (!began || w.eye("PUBSUB", "CHANNELS", of_locks).strings().empty()) io.run_one_for(1ms);
  }
}  // what hangs on their slots ends here

TEST_CASE("a waiter whose client ends with a context of its own is answered closed") {
  world w;
  w.eye("HSET", "busy", "stranger:1", 1);
  w.eye("PEXPIRE", "busy", 60'000);
  asio::cancellation_signal stop;
  error_code got;
  auto theirs = std::make_unique<asio::io_context>();
  std::optional<client> redis(std::in_place, theirs->get_executor(), w.settings());
  const auto note = [&got](std::exception_ptr failed, const lease&) {
    try {
      if (failed) std::rethrow_exception(failed);
    } catch (const error& e) {
      got = e.code();
    }
  };
  asio::co_spawn(w.io, redis->mutex("busy").lock(), asio::bind_cancellation_slot(stop.slot(), note));
  while (w.eye("PUBSUB", "CHANNELS", of_locks).strings().empty()) {
    w.pass(1ms);
    theirs->run_one_for(1ms);
  }
  redis.reset();
  theirs->restart();
  theirs->run();
  theirs.reset();
  w.until([&] { return got == errc::shutting_down; });
  stop.emit(asio::cancellation_type::terminal);
}

TEST_CASE("a caller that was answered may end with its context while the client works on") {
  world w;
  auto mine = std::make_unique<asio::io_context>();
  auto redis = w.make();
  asio::cancellation_signal stop;
  bool over = false;
  auto held = w.run(redis.mutex("m").lock());
  w.server.stop();
  asio::co_spawn(asio::make_strand(*mine), held.unlock(),
                 asio::bind_cancellation_slot(stop.slot(), [&over](std::exception_ptr) { over = true; }));
  mine->poll();
  w.pass(5ms);
  stop.emit(asio::cancellation_type::terminal);
  while (!over) {
    w.pass(1ms);
    mine->restart();
    mine->poll();
  }
  stop.slot().clear();  // co_spawn's own, which belongs to the caller's context
  mine.reset();
  w.server.cont();
  w.until([&] { return w.keys().empty(); });
}

TEST_CASE("a section may end with its context while its client lives on") {
  world w;
  auto mine = std::make_unique<asio::io_context>();
  int alive = 0;
  auto redis = w.make();
  asio::co_spawn(*mine, has_a_section(redis, alive), asio::detached);
  while (alive != 2) {
    w.pass(1ms);
    mine->restart();
    mine->poll();
  }
  mine.reset();
  CHECK(alive == 0);
  w.until([&] { return w.keys().empty(); });
  CHECK(w.heard->count(event_kind::lost) == 0);
}

TEST_CASE("a mutex that was moved from has no name and locks nothing") {
  world w;
  auto redis = w.make();
  auto from = redis.mutex("m");
  const auto to = std::move(from);
  CHECK(from.name().empty());  // NOLINT(bugprone-use-after-move)
  CHECK(to.name() == "m");
  CHECK(w.code_of(from.lock()) == errc::closed);
}

TEST_CASE("multi_lock and any_of say of a lock that was moved from what that lock says") {
  world w;
  auto redis = w.make();
  auto from = redis.mutex("m");
  const auto to = std::move(from);
  const auto closed = w.code_of(from.lock());  // NOLINT(bugprone-use-after-move)
  const auto refuses = [&](const auto& several) {
    CHECK(w.code_of(several.lock()) == closed);
    CHECK(w.code_of(several.try_lock()) == closed);
    CHECK(w.code_of(several.try_lock_for(1s)) == closed);
  };
  refuses(any_of({from}));
  refuses(any_of({to, from}));
  refuses(multi_lock({from}));
  refuses(multi_lock({to, from}));
  auto all = multi_lock({to});
  const auto moved_all = std::move(all);
  refuses(all);  // NOLINT(bugprone-use-after-move)
  auto any = any_of({to});
  const auto moved_any = std::move(any);
  refuses(any);  // NOLINT(bugprone-use-after-move)
  w.run(w.run(moved_all.lock()).unlock());
  w.run(w.run(moved_any.lock()).unlock());
}
