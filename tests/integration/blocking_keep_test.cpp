// SPDX-License-Identifier: BSL-1.0
// Workers of plain threads: what they run under, and how they end.
#include <semaphore>
#include <stdexcept>

#include "integration/blocking_world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

void wait_for(const std::stop_token& token) {
  std::binary_semaphore requested(0);
  const std::stop_callback tell(token, [&] { requested.release(); });
  if (!requested.try_acquire_for(20s)) throw std::runtime_error("the stop was not requested in time");
}

void fail(std::stop_token) { throw std::runtime_error("the queue is gone"); }

/// A worker on a thread of its own. Stopped and joined at its end.
struct threaded_worker {
  template <class Lock, class F>
  void start(Lock& lock, F f, keep_options options = {}) {
    options.monitor = &monitor;
    thread = std::jthread([this, &lock, f, options](std::stop_token stop) mutable {
      code = client_side::code_of_call([&] { blocking::keep_running(lock, f, stop, options); });
    });
  }
  void see_state(worker_state state) const {
    see([&] { return monitor.status().state == state; });
  }
  error_code end() {
    thread.request_stop();
    return join();
  }
  error_code join() {
    thread.join();
    return code;
  }

  worker_monitor monitor;
  error_code code;
  std::jthread thread;
};

}  // namespace

TEST_CASE("a worker of a thread runs its function under the lock until it returns") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto lock = redis.fenced_mutex("m");
  int runs = 0;
  std::uint64_t last_token = 0;
  const auto f = [&](std::stop_token token) {
    CHECK(lock.held());
    const auto fencing_token = lock.token().value_or(0);
    CHECK(fencing_token > last_token);
    last_token = fencing_token;
    CHECK_FALSE(token.stop_requested());
    const std::lock_guard again(lock);
    if (++runs < 3) fail(token);
  };
  worker_monitor monitor;
  blocking::keep_running(lock, f, {},
                         {.restart = restart_policy::on_failure, .first_backoff = 10ms, .monitor = &monitor});
  CHECK(runs == 3);
  CHECK_FALSE(lock.held());
  CHECK(monitor.status().failures == 2);
  CHECK(monitor.status().name == "m");
  CHECK(w.locks().empty());
}

TEST_CASE("a function that is not to run again throws its exception to the caller") {
  blocking_world w;
  blocking::client redis(w.settings());
  CHECK_THROWS_WITH(blocking::keep_running(redis.mutex("m"), fail, {}, {.restart = restart_policy::never}),
                    "the queue is gone");
  CHECK(w.keys().empty());
}

TEST_CASE("a stop ends a worker of a thread that waits, works, pauses or backs off") {
  blocking_world w;
  blocking::client redis(w.settings()), other(w.settings());
  auto lock = redis.mutex("m");
  threaded_worker worker;
  SECTION("waits") {
    auto held = other.mutex("m");
    held.lock();
    worker.start(lock, wait_for);
    worker.see_state(worker_state::waiting);
    w.see_waiters("m");
    CHECK_FALSE(worker.end());
    held.unlock();
  }
  SECTION("works") {
    worker.start(lock, wait_for);
    worker.see_state(worker_state::running);
    CHECK_FALSE(worker.end());
  }
  SECTION("pauses") {
    worker.start(lock, [](std::stop_token) {}, {.pause = 1h});
    worker.see_state(worker_state::pausing);
    CHECK_FALSE(worker.end());
  }
  SECTION("backs off") {
    worker.start(lock, fail, {.first_backoff = 30s});
    worker.see_state(worker_state::backing_off);
    CHECK_FALSE(worker.end());
  }
  CHECK(worker.monitor.status().state == worker_state::stopped);
  see([&] { return w.keys().empty(); });
}

TEST_CASE("a stop before the call runs nothing") {
  blocking_world w;
  blocking::client redis(w.settings());
  std::stop_source stopped;
  stopped.request_stop();
  int runs = 0;
  blocking::keep_running(
      redis.mutex("m"), [&](std::stop_token) { ++runs; }, stopped.get_token());
  CHECK(runs == 0);
}

TEST_CASE("a loss requests the stop of the function, and the worker of the thread waits anew") {
  blocking_world w;
  blocking::client redis(w.settings_with([](config& c) { c.ttl = 300ms; }));
  auto lock = redis.mutex("m");
  threaded_worker worker;
  worker.start(lock, wait_for, {.first_backoff = 10ms});
  worker.see_state(worker_state::running);
  w.eye("DEL", "m");
  w.eye("HSET", "m", "stranger:1", 1);
  see([&] { return worker.monitor.status().failures == 1; });
  CHECK(worker.monitor.status().last_code == errc::lost);
  worker.see_state(worker_state::waiting);
  w.eye("DEL", "m");
  worker.see_state(worker_state::running);
  CHECK_FALSE(worker.end());
}

TEST_CASE("the end of its client ends a worker of a thread in every state") {
  blocking_world w;
  std::optional<blocking::client> redis(w.settings());
  auto lock = redis->mutex("m");
  threaded_worker worker;
  SECTION("works") {
    worker.start(lock, wait_for);
    worker.see_state(worker_state::running);
  }
  SECTION("backs off") {
    worker.start(lock, fail, {.first_backoff = 30s});
    worker.see_state(worker_state::backing_off);
  }
  redis.reset();
  CHECK_FALSE(worker.join());
}

TEST_CASE("the end of its lock object ends a worker of a thread") {
  blocking_world w;
  blocking::client redis(w.settings());
  std::optional<blocking::mutex> lock(redis.mutex("m"));
  const bool assigned = GENERATE(true, false);
  threaded_worker worker;
  SECTION("works") {
    worker.start(*lock, wait_for, {.first_backoff = 10ms});
    worker.see_state(worker_state::running);
  }
  SECTION("backs off") {
    worker.start(*lock, fail, {.first_backoff = 10ms});
    see([&] { return worker.monitor.status().failures > 0; });
  }
  SECTION("waits") {
    w.eye("HSET", "m", "stranger:1", 1);
    w.eye("PEXPIRE", "m", 60'000);
    worker.start(*lock, wait_for);
    w.see_waiters("m");
  }
  assigned ? void(*lock = redis.mutex("other")) : lock.reset();
  CHECK(worker.join() == errc::closed);
}

TEST_CASE("after a stop a worker of a thread throws what its function threw, and no loss") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto lock = redis.mutex("m");
  std::binary_semaphore go_on(0);
  const bool throws = GENERATE(true, false);
  const auto f = [&](std::stop_token) {
    go_on.acquire();
    if (throws) throw boost::system::system_error(make_error_code(std::errc::io_error));
  };
  threaded_worker worker;
  worker.start(lock, f);
  worker.see_state(worker_state::running);
  w.eye("DEL", "m");
  worker.thread.request_stop();
  go_on.release();
  CHECK(worker.join() == (throws ? error_code(make_error_code(std::errc::io_error)) : error_code()));
}

TEST_CASE("a worker of a thread takes one of several locks and no multi_lock") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto first = redis.mutex("p:1"), second = redis.mutex("p:2");
  blocking::any_of any({first, second});
  blocking::multi_lock all({first, second});
  const std::lock_guard held(first);
  const auto work = [](std::stop_token) {};
  worker_monitor monitor;
  std::thread([&] {
    blocking::keep_running(any, work, {}, {.restart = restart_policy::never, .monitor = &monitor});
  }).join();
  CHECK(monitor.status().name == "p:2");
  CHECK(client_side::code_of_call([&] { blocking::keep_running(all, work); }) == errc::invalid_argument);
}
