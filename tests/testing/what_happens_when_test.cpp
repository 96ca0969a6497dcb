// SPDX-License-Identifier: BSL-1.0
// The rows of "What happens when …" (docs/guide/safety.md) of one server, as a user's tests have them, for each kind of
// lock. Not here: what needs several servers, and the client's wall clock, which is not used. A machine that sleeps is
// a process that is paused.
#include <holdfast/testing/server.hpp>

#include <time.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>

#include <optional>
#include <vector>

#include "support/catch.hpp"
#include "support/fork.hpp"
#include "support/sanitized.hpp"
#include "testing/code_of.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::code_of;
using std::chrono::nanoseconds;

namespace {

/// Of this thread alone: whatever else the machine does.
nanoseconds cpu_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

/// What a client's observer was told of holds.
struct diary : observer {
  void on(const event& e) noexcept override {
    if (e.kind == event_kind::suspended || e.kind == event_kind::restored || e.kind == event_kind::lost)
      told.push_back(e.kind);
    if (e.kind == event_kind::outage) ++outages;
  }
  std::vector<event_kind> told;
  int outages = 0;
};

enum class kind_of_lock { plain, fenced, simple };

/// One holder and one waiter of a lock, each with a client of its own. A row takes less than 50 ms of work.
struct row {
  row()
      : which(GENERATE(kind_of_lock::plain, kind_of_lock::fenced, kind_of_lock::simple)),
        holders(server.make_client({.observer = holders_diary})), waiters(server.make_client()) {}
  ~row() {
    const auto allowed = test::address_sanitized || test::thread_sanitized ? 1s : 50ms;
    CHECK(cpu_time() - began < allowed);
  }

  mutex lock_of(const client& whose, std::string_view name = "N") const {
    switch (which) {
      case kind_of_lock::plain: break;
      case kind_of_lock::fenced: return whose.fenced_mutex(name);
      case kind_of_lock::simple: return whose.simple_mutex(name);
    }
    return whose.mutex(name);
  }
  lease take(lock_options options = {}) { return server.run(lock_of(holders).lock(options)); }
  /// Somebody waits from now on.
  void wait() {
    asio::co_spawn(io, lock_of(waiters).lock(), [this](std::exception_ptr failed, lease got) {
      if (failed) std::rethrow_exception(failed);
      waited = std::move(got);
    });
    server.run_until_idle();
    REQUIRE_FALSE(waited);
  }
  /// When the waiter has the lock, counted from now.
  nanoseconds until_waited(nanoseconds at_most = 1h) {
    const auto from = server.elapsed();
    while (!waited && server.elapsed() - from < at_most) server.advance(50ms);
    REQUIRE(waited);
    return server.elapsed() - from;
  }

  const nanoseconds began = cpu_time();
  const kind_of_lock which;
  asio::io_context io;
  std::shared_ptr<diary> holders_diary = std::make_shared<diary>();
  testing::server server{io};
  client holders, waiters;
  std::optional<lease> waited;
};

using kind = event_kind;
/// A waiter looks at a simple lock so often, and at any other when its TTL is over.
constexpr auto late = 300ms;

}  // namespace

TEST_CASE_METHOD(row, "when the holder dies, the lock is free when its TTL is over") {
  auto held = take();
  wait();
  server.link_of(holders).fall_silent();  // a process that is gone renews nothing
  CHECK(until_waited() <= 30s + late);
  CHECK_FALSE(held.held());
}

TEST_CASE_METHOD(row, "when the link is down for less than the validity, the lease is suspended and held again") {
  auto held = take();
  wait();
  server.link_of(holders).cut();
  server.advance(14s);
  CHECK(held.state() == lease_state::suspended);
  CHECK(held.held());
  server.link_of(holders).restore();
  server.advance(6s);
  CHECK(held.state() == lease_state::held);
  CHECK(holders_diary->told == std::vector{kind::suspended, kind::restored});
  CHECK_FALSE(waited);
}

TEST_CASE_METHOD(row, "when the link is down for longer, the holder knows before the lock is another's") {
  auto held = take();
  wait();
  server.link_of(holders).cut();
  bool overlapped = false;
  while (!waited) {
    server.advance(10ms);
    overlapped |= waited && held.held();
  }
  CHECK_FALSE(overlapped);
  CHECK(server.elapsed() <= 30s + late);
  CHECK(held.state() == lease_state::lost);
  CHECK(code_of([&] { server.run(held.unlock()); }) == errc::lost);
}

TEST_CASE_METHOD(row, "when the holder's process is paused past its validity, the first held() afterwards is false") {
  auto held = take();
  std::string body = "never begun";
  auto section = [&](lease&) -> asio::awaitable<void> {
    body = "at work";
    try {
      co_await server.sleep_for(1h);
      body = "done";
    } catch (const boost::system::system_error& e) {
      if (e.code() == asio::error::operation_aborted) body = "cancelled";
    }
  };
  auto mutex = lock_of(holders, "M");
  error_code failed;
  asio::co_spawn(io, with_lock(mutex, section), [&](std::exception_ptr e) {
    try {
      if (e) std::rethrow_exception(e);
    } catch (const error& lost) {
      failed = lost.code();
    }
  });
  server.run_until_idle();
  REQUIRE(body == "at work");

  server.pause_process(31s);
  CHECK_FALSE(held.held());  // before anything has run
  server.run_until_idle();
  CHECK(body == "cancelled");
  CHECK(failed == errc::lost);
  CHECK(server.locks().empty());
}

TEST_CASE_METHOD(row, "when the process forks, the child's copy of a lease is over and the parent's is not") {
  auto held = take();
  CHECK(test::in_child([&] { return !held.held(); }));
  server.advance(1min);
  CHECK(held.state() == lease_state::held);
}

TEST_CASE_METHOD(row, "when Redis restarts and keeps its data, the lease is suspended and held again in time") {
  auto held = take();
  wait();
  server.shut_down();
  server.advance(10s);
  CHECK(held.state() == lease_state::suspended);
  server.start();
  server.advance(6s);
  CHECK(held.state() == lease_state::held);
  CHECK_FALSE(waited);
  CHECK(holders_diary->told == std::vector{kind::suspended, kind::restored});
}

TEST_CASE_METHOD(row, "when Redis is back with its data too late, the lease is lost") {
  auto held = take();
  wait();
  server.shut_down();
  server.advance(40s);
  CHECK(held.state() == lease_state::lost);
  server.start();
  until_waited(6s);
}

TEST_CASE_METHOD(row, "when Redis restarts empty, the holder is told at once and the waiter gets the lock") {
  auto held = take();
  wait();
  server.restart_empty();
  server.advance(6s);
  CHECK(held.state() == lease_state::lost);
  CHECK(waited);
}

TEST_CASE_METHOD(row, "when the key is deleted or evicted, the next renewal finds the loss") {
  auto held = take();
  wait();
  server.lose("N");
  CHECK(held.held());  // two may hold it now
  until_waited(5s);
  server.advance(10s);
  CHECK(held.state() == lease_state::lost);
}

TEST_CASE_METHOD(row, "when the server's clock is set forward, the next renewal finds the loss") {
  auto held = take();
  wait();
  server.step_clock(31s);
  until_waited(6s);
  CHECK(held.held());  // two may hold it now
  server.advance(10s);
  CHECK(held.state() == lease_state::lost);
}

TEST_CASE_METHOD(row, "when the server's clock is set back, a waiter waits longer for a holder that died") {
  auto held = take();
  wait();
  server.step_clock(-20s);
  server.advance(20s);
  CHECK(held.held());
  server.link_of(holders).fall_silent();
  CHECK(until_waited() > 30s);
}

TEST_CASE_METHOD(row, "when the server's clock runs faster than the drift allows, the next renewal finds the loss") {
  auto held = take({.ttl = 30s});  // no renewal: else it would be renewed in time
  wait();
  for (int second = 0; second < 28; ++second) {
    server.advance(1s);
    server.step_clock(100ms);  // ten per cent
  }
  CHECK(waited);
  CHECK(held.held());  // for the difference
  CHECK(code_of([&] { server.run(held.renew()); }) == errc::lost);
}

TEST_CASE_METHOD(row, "when another client breaks the lock, the holder is told at its next renewal") {
  auto held = take();
  wait();
  auto third = server.make_client();
  CHECK(server.run(lock_of(third).force_unlock()));
  server.run_until_idle();
  CHECK(waited);
  server.advance(10s);
  CHECK(held.state() == lease_state::lost);
}

TEST_CASE_METHOD(row,
                 "when Redis is out of memory, what is held is renewed and given back, and a new lock is refused") {
  auto held = take();
  server.refuse(testing::refusal::out_of_memory);
  server.advance(1min);
  CHECK(held.state() == lease_state::held);
  CHECK(code_of([&] { server.run(lock_of(waiters, "M").try_lock()); }) == errc::server_refused);
  asio::co_spawn(io, lock_of(waiters, "M").lock(), [this](std::exception_ptr, lease got) { waited = std::move(got); });
  server.advance(1min);
  CHECK_FALSE(waited);
  server.run(held.unlock());
  server.refuse(testing::refusal::none);
  until_waited(6s);
}

TEST_CASE_METHOD(row, "when Redis may not write, a lease is suspended, and lost when its validity ends") {
  auto held = take();
  server.refuse(testing::refusal::disk_failed);
  server.advance(12s);
  CHECK(held.state() == lease_state::suspended);
  CHECK(held.held());
  server.advance(20s);
  CHECK(held.state() == lease_state::lost);
  CHECK(code_of([&] { server.run(lock_of(waiters, "M").try_lock()); }) == errc::server_refused);
}

TEST_CASE_METHOD(row, "when the reply to a lock is lost, the command is repeated and counts once") {
  server.run(holders.connect());
  server.link_of(holders).drop_next_reply();
  auto held = take();
  CHECK(held.held());
  CHECK(server.holder("N")->count == 1);
  server.link_of(holders).drop_next_reply();
  server.run(held.unlock());
  CHECK(server.locks().empty());
  CHECK(holders_diary->outages == 2);
}
