// SPDX-License-Identifier: BSL-1.0
#include <holdfast/metrics.hpp>

#include <atomic>
#include <thread>

#include "integration/world.hpp"
#include "support/prometheus_text.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// A client with a thread of its own.
struct busy_client {
  busy_client(const world& w, std::shared_ptr<metrics> numbers)
      : redis(io.get_executor(), {.url = w.url(), .observer = std::move(numbers)}) {}

  asio::awaitable<void> work(std::string name, int times) {
    for (int n = 0; n < times; ++n) {
      owner task;
      auto outer = co_await redis.mutex(name, task).lock();
      {
        const auto inner = co_await as_result(redis.mutex(name, task).lock());  // lost now and then: somebody forces
        (void)co_await redis.simple_mutex(name + ":simple").try_lock();
      }
      if (n % 16 == 0) co_await redis.mutex(name).force_unlock();
      co_await as_result(outer.unlock());
    }
    if (--at_work == 0) co_await redis.shutdown(5s);
  }
  void run(int times) {
    constexpr int tasks = 4;
    at_work = tasks;
    for (int t = 0; t < tasks; ++t)
      asio::co_spawn(io, work("name:" + std::to_string(t), times), [](std::exception_ptr failed) {
        if (failed) std::rethrow_exception(failed);
      });
    io.run();
  }

  asio::io_context io{1};
  client redis;
  int at_work = 0;
};

double sum(const prometheus_text& of, const std::string& beginning) {
  double all = 0;
  for (const auto& [series, value] : of.samples())
    if (series.starts_with(beginning)) all += value;
  return all;
}

}  // namespace

TEST_CASE("clients on threads of their own share metrics, which are scraped meanwhile and right at the end") {
  const world w;
  const auto numbers = std::make_shared<metrics>(metrics::options{.lock_names = 5});
  constexpr int clients = 3, times = 60;
  std::atomic<bool> over{false};
  std::atomic<int> scrapes{0};
  std::thread scraper([&] {
    for (; !over || scrapes == 0; ++scrapes) {
      const prometheus_text said(*numbers);  // throws where it does not agree with itself
      for (const auto& [series, value] : said.samples())
        if (series.starts_with("holdfast_lock_held") && value < 0) throw std::runtime_error(series);
    }
  });
  std::vector<std::thread> threads;
  for (int c = 0; c < clients; ++c) threads.emplace_back([&] { busy_client(w, numbers).run(times); });
  for (auto& t : threads) t.join();
  over = true;
  scraper.join();
  const prometheus_text said(*numbers);
  CHECK(sum(said, "holdfast_lock_held") == 0);
  CHECK(sum(said, "holdfast_lock_waiters") == 0);
  CHECK(sum(said, "holdfast_connections") == 0);
  CHECK(sum(said, "holdfast_connection_in_flight") == 0);
  CHECK(said[R"(holdfast_events_total{event="acquired"})"] > clients * times);
  CHECK(said[R"(holdfast_events_total{event="acquired"})"] == sum(said, "holdfast_lock_hold_duration_seconds_count"));
  CHECK(said[R"(holdfast_events_total{event="lost"})"] == sum(said, "holdfast_lock_lost_total"));
  CHECK(scrapes > 0);
}

TEST_CASE_METHOD(world, "an outage is a connection less, and its end a reconnect") {
  const auto numbers = std::make_shared<metrics>();
  auto redis = make([&](config& c) { c.observer = numbers; });
  const auto connections = [&] { return sum(prometheus_text(*numbers), R"(holdfast_connections{role="command")"); };
  run(redis.connect());
  CHECK(connections() == 1);
  auto kept = run(redis.mutex("a").lock());
  eye("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  const auto again = [&] { return sum(prometheus_text(*numbers), "holdfast_connection_reconnects_total"); };
  until([&] { return again() == 1; });
  CHECK(connections() == 1);
  run(redis.shutdown(1s));
  CHECK(connections() == 0);
  CHECK(again() == 1);
}

TEST_CASE_METHOD(world,
                 "writers and readers of a shared mutex are counted as two kinds, and a reader that joins is no hold") {
  const auto numbers = std::make_shared<metrics>();
  auto redis = make([&](config& c) { c.observer = numbers; });
  const auto now = [&](const std::string& series) { return prometheus_text(*numbers)[series]; };
  const owner task;
  const auto guard = redis.shared_mutex("m", task);
  {
    auto reads = run(guard.lock_shared()), joins = run(guard.lock_shared());
    CHECK(now(R"(holdfast_lock_held{kind="shared_mutex_reader"})") == 1);
    CHECK(now(R"(holdfast_lock_wait_duration_seconds_count{kind="shared_mutex_reader",outcome="reentered"})") == 1);
    CHECK_FALSE(run(redis.shared_mutex("m").try_lock()));
    CHECK(now(R"(holdfast_lock_wait_duration_seconds_count{kind="shared_mutex",outcome="not_acquired"})") == 1);
    run(joins.unlock());
    run(reads.unlock());
  }
  auto writes = run(guard.lock());
  CHECK(now(R"(holdfast_lock_held{kind="shared_mutex"})") == 1);
  CHECK(now(R"(holdfast_lock_held{kind="shared_mutex_reader"})") == 0);
  run(writes.unlock());
  CHECK(now(R"(holdfast_lock_hold_duration_seconds_count{kind="shared_mutex",end="released"})") == 1);
  CHECK(now(R"(holdfast_lock_hold_duration_seconds_count{kind="shared_mutex_reader",end="released"})") == 1);
}
