// SPDX-License-Identifier: BSL-1.0
// Workers on a real server: cancelled anywhere, on every kind of lock, and replaced when their process is killed or
// their body ends.
#include <holdfast/keep_running.hpp>

#include <iostream>
#include <memory>
#include <stdexcept>

#include "integration/cancel_everywhere.hpp"
#include "integration/cancellable_call.hpp"
#include "support/fork.hpp"

using namespace holdfast;
using namespace holdfast::test;
using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

namespace {

asio::awaitable<void> wait_until_cancelled() {
  asio::steady_timer never(co_await asio::this_coro::executor, 1h);
  co_await never.async_wait(asio::use_awaitable);
}

asio::awaitable<void> work_on(lease&) { co_await wait_until_cancelled(); }

/// A worker that is cancelled at the end of the test.
struct running_worker {
  running_worker(world& in, mutex lock) : w(in) {
    auto body = [this](lease&) -> asio::awaitable<void> {
      began = steady_clock::now();
      co_await wait_until_cancelled();
    };
    auto ends = [this](std::exception_ptr) { ended = true; };
    asio::co_spawn(w.io, keep_running(std::move(lock), body, {.monitor = &monitor}),
                   asio::bind_cancellation_slot(stop.slot(), ends));
  }
  ~running_worker() {
    stop.emit(asio::cancellation_type::terminal);
    w.until([this] { return ended; });
  }
  worker_state state() const { return monitor.status().state; }

  world& w;
  worker_monitor monitor;
  asio::cancellation_signal stop;
  std::optional<steady_clock::time_point> began;
  bool ended = false;
};

}  // namespace

TEST_CASE("a worker cancelled anywhere leaves nothing: neither in a run nor in a backoff") {
  world w;
  auto make = [](client& redis) -> step {
    return [&redis]() -> asio::awaitable<void> {
      int runs = 0;
      auto body = [&runs](lease&) -> asio::awaitable<void> {
        co_await asio::post(asio::use_awaitable);
        if (++runs == 1) throw boost::system::system_error(asio::error::operation_aborted);  // a failure of its own
      };
      const keep_options options{.restart = restart_policy::on_failure, .first_backoff = 10ms};
      co_await keep_running(redis.mutex("m"), body, options);
    };
  };
  cancel_everywhere("worker", w, make, [](client&) {});
}

TEST_CASE("a worker whose body outlives a cancellation ends, also where its caller gets no exception of it") {
  world w;
  auto redis = w.make();
  int runs = 0;
  std::optional<asio::steady_timer> work;
  auto body = [&](lease&) -> asio::awaitable<void> {
    ++runs;
    work.emplace(co_await asio::this_coro::executor, 1h);
    co_await as_result(work->async_wait(asio::use_awaitable));
  };
  auto caller = [&]() -> asio::awaitable<void> {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await keep_running(redis.mutex("m"), body, {.pause = 0ms});
  };
  cancellable_call<void> call(w, caller());
  w.until([&] { return work.has_value(); });
  call.cancel();
  w.until([&] { return call.answer.has_value(); });
  CHECK(call.answer->error() == asio::error::operation_aborted);
  CHECK(runs == 1);
  w.until([&] { return w.locks().empty(); });
}

TEST_CASE("a worker runs under each kind of lock") {
  world w;
  auto redis = w.make();
  const auto shared = redis.shared_mutex("s");
  const std::vector<mutex> kinds{redis.mutex("m"),        redis.fenced_mutex("f"),
                                 redis.simple_mutex("t"), shared.writer(),
                                 shared.reader(),         redis.expirable_semaphore("p", 2).as_mutex()};
  for (const auto& lock : kinds) {
    int runs = 0;
    auto body = [&](lease& held) -> asio::awaitable<void> {
      CHECK(held.held());
      CHECK(held.name() == lock.name());
      if (++runs < 2) throw std::runtime_error("once more");
      co_return;
    };
    w.run(keep_running(lock, body, {.restart = restart_policy::on_failure, .first_backoff = 10ms}));
    CHECK(runs == 2);
  }
}

TEST_CASE("a body has the terms of its lease, each time") {
  world w;
  auto redis = w.make([](config& c) { c.notes = true; });
  auto body = [&](lease&) -> asio::awaitable<void> {
    for (std::string note; note != "the nightly report";) {  // it is written after the grant
      const auto holder = co_await redis.mutex("m").holder();
      CHECK(holder->ttl <= 3s);
      note = holder->note;
    }
  };
  const keep_options once{.restart = restart_policy::never};
  auto operation = [&] {
    std::string note = "the nightly report";  // gone when the operation starts
    return keep_running(redis.mutex("m"), body, once, {.ttl = 3s, .renew = true, .note = note});
  }();
  w.run(std::move(operation));
}

TEST_CASE("a worker whose process is killed is replaced when its ttl ends") {
  world w;
  auto settings = w.settings();
  settings.ttl = 600ms;
  settings.observer = nullptr;
  forked other([settings] {
    asio::io_context io;
    client redis(io.get_executor(), settings);
    test::run(io, keep_running(redis.mutex("m"), work_on), std::chrono::hours(1));
    return true;
  });
  w.until([&] { return w.eye("EXISTS", "m") == 1; });
  auto redis = w.make();
  running_worker next(w, redis.mutex("m"));
  w.until([&] { return w.eye("PUBSUB", "CHANNELS", of_locks).array().size() == 1; });
  CHECK(next.state() == worker_state::waiting);
  other.kill();
  const milliseconds left(w.eye("PTTL", "m").integer());
  const auto killed = steady_clock::now();
  w.until([&] { return next.began.has_value(); });
  const auto waited = *next.began - killed;
  CHECK(waited >= left - 2ms);  // two clocks, in whole milliseconds
  CHECK(waited < left + 5s);    // the machine may be busy; the bench has the figure
  std::cout << "a killed worker was replaced " << duration_cast<microseconds>(waited - left).count()
            << " us after the end of its ttl\n";
}

TEST_CASE("a worker whose body ends is replaced at once by one of another client") {
  world w;
  auto redis = w.make(), other = w.make();
  std::optional<steady_clock::time_point> ended;
  std::optional<asio::steady_timer> work;
  auto body = [&](lease&) -> asio::awaitable<void> {
    work.emplace(co_await asio::this_coro::executor, 1h);
    co_await as_result(work->async_wait(asio::use_awaitable));
    ended = steady_clock::now();
  };
  started<void> first(w, keep_running(redis.mutex("m"), body, {.restart = restart_policy::never}));
  w.until([&] { return work.has_value(); });
  running_worker next(w, other.mutex("m"));
  w.until([&] { return w.eye("PUBSUB", "CHANNELS", of_locks).array().size() == 1; });
  work->cancel();
  w.until([&] { return next.began.has_value(); });
  CHECK(*next.began - *ended < 5s);  // its own poll would come later; the bench has the figure
  w.until([&] { return first.answer.has_value(); });
  CHECK(first.succeeded());
  std::cout << "a worker was replaced " << duration_cast<microseconds>(*next.began - *ended).count()
            << " us after the end of its body\n";
}

TEST_CASE("a drain, a shutdown and the end of the client leave nothing of a worker that backs off") {
  world w;
  auto fails = [](lease&) -> asio::awaitable<void> {
    throw std::runtime_error("always");
    co_return;
  };
  const auto end = GENERATE(0, 1, 2);
  std::optional<client> redis(w.make());
  worker_monitor monitor;
  started<void> worker(w, keep_running(redis->mutex("m"), fails, {.first_backoff = 30s, .monitor = &monitor}));
  w.until([&] { return monitor.status().state == worker_state::backing_off; });
  if (end == 0) w.run(redis->drain(10s));
  if (end == 1) w.run(redis->shutdown(10s));
  redis.reset();
  w.until([&] { return worker.answer.has_value(); });
  CHECK(worker.succeeded());
  CHECK(monitor.status().state == worker_state::stopped);
  drain(w.io, 10s);
  CHECK(w.keys().empty());
}

TEST_CASE("a worker whose context ends before its client's is stopped, and its lock is given back") {
  world w;
  auto redis = w.make();
  worker_monitor monitor;
  {
    asio::io_context mine;
    asio::co_spawn(mine, keep_running(redis.mutex("m"), work_on, {.monitor = &monitor}), asio::detached);
    w.until([&] {
      mine.restart();
      mine.poll();
      return monitor.status().state == worker_state::running;
    });
  }
  CHECK(monitor.status().state == worker_state::stopped);
  w.until([&] { return w.eye("EXISTS", "m") == 0; });
}
