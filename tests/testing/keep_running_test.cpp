// SPDX-License-Identifier: BSL-1.0
// Workers in virtual time: their runs, pauses, backoffs and ends.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/testing/primaries.hpp>
#include <holdfast/testing/server.hpp>

#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

/// A keep_running() of one client.
class one_worker {
 public:
  using action = std::function<asio::awaitable<void>(lease&)>;

  one_worker(testing::server& on, asio::io_context& on_io) : server(on), io(on_io) {}

  template <class Lock>
  void begin(const Lock& lock, action does, keep_options options = {}, lock_options terms = {}) {
    body = std::move(does);
    options.monitor = &monitor;
    auto run = [this](lease& held) { return one_run(held); };
    auto ends = [this](std::exception_ptr thrown) {
      ended = true;
      failed = std::move(thrown);
    };
    asio::co_spawn(io, keep_running(lock, run, options, terms), asio::bind_cancellation_slot(stop.slot(), ends));
    server.run_until_idle();
  }
  worker_state state() const { return monitor.status().state; }
  void cancel() {
    stop.emit(asio::cancellation_type::terminal);
    server.run_until_idle();
  }
  /// Its error; none: it has returned.
  error_code code() const {
    REQUIRE(ended);
    try {
      if (failed) std::rethrow_exception(failed);
    } catch (const boost::system::system_error& failure) {
      return failure.code();
    }
    return {};
  }

  testing::server& server;
  asio::io_context& io;
  worker_monitor monitor;
  action body;
  std::vector<std::chrono::nanoseconds> begins;  // of its runs
  int inside = 0;
  bool ended = false;
  std::exception_ptr failed;
  asio::cancellation_signal stop;

 private:
  asio::awaitable<void> one_run(lease& held) {
    begins.push_back(server.elapsed());
    ++inside;
    const struct leaves {
      ~leaves() { --inside; }
      int& inside;
    } leaves{inside};
    co_await body(held);
  }
};

struct worker_world {
  std::string metrics_text() const {
    std::ostringstream text;
    numbers->write(text);
    return text.str();
  }
  bool counts(const std::string& line) const { return metrics_text().find(line + "\n") != std::string::npos; }
  asio::awaitable<void> sleep(std::chrono::nanoseconds time) { return server.sleep_for(time); }

  asio::io_context io;
  testing::server server{io};
  std::shared_ptr<metrics> numbers = std::make_shared<metrics>();
  client redis = server.make_client({.observer = numbers});
  client other = server.make_client();
  one_worker worker{server, io};
};

asio::awaitable<void> fail(lease&) {
  throw std::runtime_error("the queue is gone");
  co_return;
}

asio::awaitable<void> succeed(lease&) { co_return; }

}  // namespace

TEST_CASE("a body that returned runs again after the pause, and the lock is free meanwhile") {
  worker_world w;
  w.worker.begin(w.redis.mutex("m"), succeed, {.pause = 10s});
  CHECK(w.worker.state() == worker_state::pausing);
  CHECK(w.server.locks().empty());
  CHECK(w.server.run(w.other.mutex("m").try_lock()).has_value());
  w.server.advance(10s - 1ns);
  CHECK(w.worker.begins.size() == 1);
  w.server.advance(1ns);
  CHECK(w.worker.begins.size() == 2);
  w.worker.cancel();
  CHECK(w.worker.code() == asio::error::operation_aborted);
  w.server.check();
}

TEST_CASE("of two workers one runs, and the other takes over when its body ends or its process is cut off") {
  worker_world w;
  one_worker second(w.server, w.io);
  const auto works = [&](lease&) { return w.sleep(24h); };
  w.worker.begin(w.redis.mutex("m"), works);
  second.begin(w.other.mutex("m"), works);
  CHECK(w.worker.state() == worker_state::running);
  CHECK(second.state() == worker_state::waiting);
  w.server.advance(1h);
  CHECK(w.worker.inside + second.inside == 1);

  w.server.link_of(w.redis).cut();
  for (int step = 0; step < 31'000; ++step) {
    w.server.advance(1ms);
    REQUIRE(w.worker.inside + second.inside <= 1);
  }
  CHECK(second.inside == 1);
  CHECK(w.worker.state() != worker_state::running);
  second.cancel();
  w.worker.cancel();
}

TEST_CASE("a body that throws at once backs off up to the cap, and no lock is held meanwhile") {
  worker_world w;
  w.worker.begin(w.redis.mutex("m"), fail);
  CHECK(w.worker.state() == worker_state::backing_off);
  CHECK(w.server.locks().empty());
  for (int step = 0; step < 120; ++step) {
    w.server.advance(1s);
    CHECK(w.server.locks().empty());
  }
  const auto& begins = w.worker.begins;
  REQUIRE(begins.size() >= 10);
  CHECK(begins.size() <= 14);
  auto longest = std::chrono::nanoseconds(100ms);
  for (std::size_t n = 1; n < begins.size(); ++n) {
    const auto waited = begins[n] - begins[n - 1];
    CHECK(waited >= longest / 2);
    CHECK(waited <= longest);
    longest = std::min<std::chrono::nanoseconds>(2 * longest, 30s);
  }
  w.worker.cancel();
  CHECK(w.worker.code() == asio::error::operation_aborted);
  w.server.check();
}

TEST_CASE("the monitor shows state, time, runs and the last failure of a worker, also after its end") {
  worker_world w;
  CHECK(w.worker.state() == worker_state::stopped);
  CHECK(w.worker.monitor.status().elapsed == 0s);
  int runs = 0;
  const auto body = [&](lease& held) -> asio::awaitable<void> {
    if (++runs == 1) co_await fail(held);
    co_await w.sleep(1min);
  };
  w.worker.begin(w.redis.mutex("m"), body);
  const auto copy = w.worker.monitor;
  auto status = copy.status();
  CHECK(status.state == worker_state::backing_off);
  CHECK(status.runs == 1);
  CHECK(status.failures == 1);
  CHECK(status.failures_in_row == 1);
  CHECK(status.last_failure == "the queue is gone");
  CHECK_FALSE(status.last_code);
  CHECK(status.name == "m");
  w.server.advance(100ms);
  CHECK(copy.status().state == worker_state::running);
  w.server.advance(30s);
  status = copy.status();
  CHECK(status.elapsed >= 30s);
  CHECK(status.elapsed < 31s);
  w.server.advance(30s);
  status = copy.status();
  CHECK(status.state == worker_state::pausing);
  CHECK(status.failures == 1);
  CHECK(status.failures_in_row == 0);
  w.worker.cancel();
  w.server.advance(1h);
  status = copy.status();
  CHECK(status.state == worker_state::stopped);
  CHECK(status.elapsed == 1h);
  CHECK(status.runs == 2);
}

TEST_CASE("a monitor shows one worker at a time and begins with zeros for the next") {
  worker_world w;
  w.worker.begin(w.redis.mutex("m"), fail);
  const auto again = [&] {
    w.server.run(
        keep_running(w.redis.mutex("n"), succeed, {.restart = restart_policy::never, .monitor = &w.worker.monitor}));
  };
  try {
    again();
    FAIL("the monitor was in use");
  } catch (const error& refused) {
    CHECK(refused.code() == errc::invalid_argument);
  }
  CHECK(w.worker.state() == worker_state::backing_off);
  w.worker.cancel();
  again();
  CHECK(w.worker.monitor.status().failures == 0);
  CHECK(w.worker.monitor.status().runs == 1);
}

TEST_CASE("on_failure runs a body until it returns") {
  worker_world w;
  int runs = 0;
  const auto body = [&](lease& held) -> asio::awaitable<void> {
    if (++runs < 4) co_await fail(held);
  };
  w.server.run(keep_running(w.redis.mutex("m"), body, {.restart = restart_policy::on_failure}));
  CHECK(runs == 4);
  w.server.check();
}

TEST_CASE("never runs a body once and throws its exception or its loss") {
  worker_world w;
  const keep_options once{.restart = restart_policy::never};
  CHECK_THROWS_WITH(w.server.run(keep_running(w.redis.mutex("m"), fail, once)), "the queue is gone");
  w.server.run(keep_running(w.redis.mutex("m"), succeed, once));
  w.worker.begin(
      w.redis.mutex("m"), [&](lease&) { return w.sleep(24h); }, once);
  w.server.take_over("m");
  w.server.advance(20s);
  CHECK(w.worker.code() == errc::lost);
  CHECK(w.worker.monitor.status().last_code == errc::lost);
}

TEST_CASE("a loss ends the body, and the worker waits for the lock anew") {
  worker_world w;
  w.worker.begin(w.redis.mutex("m"), [&](lease&) { return w.sleep(24h); });
  w.server.take_over("m", 1h);
  w.server.advance(20s);
  CHECK(w.worker.inside == 0);
  CHECK(w.worker.state() == worker_state::waiting);
  CHECK(w.worker.monitor.status().last_code == errc::lost);
  w.server.give_back("m");
  w.server.run_until_idle();
  CHECK(w.worker.state() == worker_state::running);
  CHECK(w.worker.begins.size() == 2);
  w.worker.cancel();
  w.server.check();
}

TEST_CASE("a cancellation inside the body is a failure of the body and not the end of its worker") {
  worker_world w;
  const auto body = [](lease&) -> asio::awaitable<void> {
    throw boost::system::system_error(asio::error::operation_aborted);
    co_return;
  };
  w.worker.begin(w.redis.mutex("m"), body);
  CHECK_FALSE(w.worker.ended);
  CHECK(w.worker.state() == worker_state::backing_off);
  w.worker.cancel();
}

TEST_CASE("a key that is no lock is retried until it is gone, and a wrong name ends the worker") {
  worker_world w;
  w.server.take_over("m", 1h, testing::format::string);
  w.worker.begin(w.redis.mutex("m"), [&](lease&) { return w.sleep(24h); });
  w.server.advance(10s);
  CHECK(w.worker.state() == worker_state::backing_off);
  CHECK(w.worker.monitor.status().last_code == errc::corrupt_lock);
  CHECK(w.worker.begins.empty());
  w.server.give_back("m");
  w.server.advance(30s);
  CHECK(w.worker.state() == worker_state::running);
  w.worker.cancel();

  one_worker nameless(w.server, w.io);
  nameless.begin(w.redis.mutex(""), succeed);
  CHECK(nameless.code() == errc::invalid_name);
  one_worker lasting(w.server, w.io);
  lasting.begin(w.redis.mutex("m"), succeed, {.backoff_cap = 1s});
  CHECK(lasting.code() == errc::invalid_argument);
}

TEST_CASE("a worker waits through an outage without a failure") {
  worker_world w;
  w.server.shut_down();
  w.worker.begin(w.redis.mutex("m"), [&](lease&) { return w.sleep(24h); });
  w.server.advance(1h);
  CHECK(w.worker.state() == worker_state::waiting);
  CHECK(w.worker.monitor.status().failures == 0);
  w.server.start();
  w.server.advance(30s);
  CHECK(w.worker.state() == worker_state::running);
  w.worker.cancel();
}

TEST_CASE("a drain ends a worker in every state, after its body") {
  worker_world w;
  const auto policy = GENERATE(restart_policy::always, restart_policy::on_failure);
  const error_code expected = policy == restart_policy::always ? error_code{} : errc::shutting_down;
  const auto drain = [&] { asio::co_spawn(w.io, w.redis.drain(1h), [](std::exception_ptr) {}); };
  SECTION("running") {
    w.worker.begin(w.redis.mutex("m"),
                   [&](lease&) -> asio::awaitable<void> {
                     co_await w.sleep(1min);
                     throw std::runtime_error("the last order failed");
                   },
                   {.restart = policy});
    drain();
    w.server.advance(59s);
    CHECK(w.worker.state() == worker_state::running);
    w.server.advance(1s);
  }
  SECTION("waiting") {
    auto held = w.server.run(w.other.mutex("m").lock());
    w.worker.begin(w.redis.mutex("m"), succeed, {.restart = policy});
    CHECK(w.worker.state() == worker_state::waiting);
    drain();
    w.server.run_until_idle();
  }
  SECTION("backing off") {
    w.worker.begin(w.redis.mutex("m"), fail, {.restart = policy, .first_backoff = 10s});
    auto held = w.server.run(w.redis.mutex("n").lock());  // so the client stays open
    drain();
    w.server.run_until_idle();
  }
  CHECK(w.worker.code() == expected);
  CHECK(w.worker.begins.size() <= 1);
  CHECK(w.worker.state() == worker_state::stopped);
}

TEST_CASE("a shutdown cuts a run off as a loss, and the worker ends") {
  worker_world w;
  const auto policy = GENERATE(restart_policy::always, restart_policy::on_failure, restart_policy::never);
  w.worker.begin(w.redis.mutex("m"), [&](lease&) { return w.sleep(24h); }, {.restart = policy});
  w.server.run(w.redis.shutdown(1s));
  w.server.run_until_idle();
  CHECK(w.worker.inside == 0);
  CHECK(w.worker.code() == (policy == restart_policy::always       ? error_code{}
                            : policy == restart_policy::on_failure ? error_code(errc::shutting_down)
                                                                   : error_code(errc::closed)));
  w.server.check();
}

TEST_CASE("a worker that is cancelled in any state leaves nothing") {
  worker_world w;
  SECTION("waiting") {
    auto held = w.server.run(w.other.mutex("m").lock());
    w.worker.begin(w.redis.mutex("m"), succeed);
    CHECK(w.worker.state() == worker_state::waiting);
    w.worker.cancel();
    w.server.run(held.unlock());
  }
  SECTION("running") {
    w.worker.begin(w.redis.mutex("m"), [&](lease&) { return w.sleep(24h); });
    w.worker.cancel();
  }
  SECTION("pausing") {
    w.worker.begin(w.redis.mutex("m"), succeed, {.pause = 24h});
    CHECK(w.worker.state() == worker_state::pausing);
    w.worker.cancel();
  }
  SECTION("backing off") {
    w.worker.begin(w.redis.mutex("m"), fail);
    CHECK(w.worker.state() == worker_state::backing_off);
    w.worker.cancel();
  }
  CHECK(w.worker.code() == asio::error::operation_aborted);
  CHECK(w.server.locks().empty());
  for (const auto* state : {"waiting", "running", "pausing", "backing_off"})
    CHECK_FALSE(w.counts(std::string("holdfast_keep_workers{kind=\"mutex\",state=\"") + state + "\"} 1"));
  w.server.check();
}

TEST_CASE("workers over any_of share the names among themselves") {
  worker_world w;
  const std::vector<mutex> here{w.redis.mutex("p:1"), w.redis.mutex("p:2")};
  const std::vector<mutex> there{w.other.mutex("p:1"), w.other.mutex("p:2")};
  one_worker second(w.server, w.io), third(w.server, w.io);
  const auto works = [&](lease&) { return w.sleep(24h); };
  w.worker.begin(any_of(here), works);
  second.begin(any_of(there), works);
  third.begin(any_of(there), works);
  CHECK(w.worker.state() == worker_state::running);
  CHECK(second.state() == worker_state::running);
  CHECK(third.state() == worker_state::waiting);
  CHECK(w.worker.monitor.status().name != second.monitor.status().name);
  const auto freed = w.worker.monitor.status().name;
  w.worker.cancel();
  CHECK(third.state() == worker_state::running);
  CHECK(third.monitor.status().name == freed);
  second.cancel();
  third.cancel();
  w.server.check();
}

TEST_CASE("the metrics have the workers by their state and the runs by their outcome") {
  worker_world w;
  CHECK(w.metrics_text().find("holdfast_keep_workers{") == std::string::npos);
  int runs = 0;
  const auto body = [&](lease& held) -> asio::awaitable<void> {
    if (++runs == 1) co_await fail(held);
    co_await w.sleep(1min);
  };
  w.worker.begin(w.redis.mutex("m"), body);
  CHECK(w.counts(R"(holdfast_keep_workers{kind="mutex",state="backing_off"} 1)"));
  CHECK(w.counts(R"(holdfast_keep_workers{kind="mutex",state="running"} 0)"));
  CHECK(w.counts(R"(holdfast_keep_runs_total{kind="mutex",outcome="threw"} 1)"));
  w.server.advance(1s);
  CHECK(w.counts(R"(holdfast_keep_workers{kind="mutex",state="backing_off"} 0)"));
  CHECK(w.counts(R"(holdfast_keep_workers{kind="mutex",state="running"} 1)"));
  w.server.advance(1min - 880ms);  // the backoff was 50 to 100 ms, and the pause is 100 ms
  CHECK(w.counts(R"(holdfast_keep_runs_total{kind="mutex",outcome="returned"} 1)"));
  CHECK(w.counts(R"(holdfast_keep_workers{kind="mutex",state="pausing"} 1)"));
  w.server.advance(1s);
  SECTION("cancelled") {
    w.worker.cancel();
    CHECK(w.counts(R"(holdfast_keep_runs_total{kind="mutex",outcome="cancelled"} 1)"));
  }
  SECTION("lost") {
    w.server.lose("m");
    w.server.advance(11s);
    CHECK(w.counts(R"(holdfast_keep_runs_total{kind="mutex",outcome="lost"} 1)"));
    w.worker.cancel();
  }
  SECTION("the end of the client") { w.server.run(w.redis.shutdown(1s)); }
  CHECK(w.counts(R"(holdfast_keep_workers{kind="mutex",state="running"} 0)"));
  CHECK(w.counts(R"(holdfast_keep_workers{kind="mutex",state="waiting"} 0)"));
}

TEST_CASE("a worker under a red_lock outlives a primary") {
  asio::io_context io;
  testing::primaries five(io, 5);
  auto redis = five.make_client();
  five.run(red_lock::initialise(redis));
  worker_monitor monitor;
  asio::cancellation_signal stop;
  bool ended = false;
  const auto body = [&](lease&) { return five.sleep_for(24h); };
  asio::co_spawn(io, keep_running(redis.red_lock("m"), body, {.monitor = &monitor}),
                 asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr) { ended = true; }));
  five.run_until_idle();
  CHECK(monitor.status().state == worker_state::running);
  five[0].shut_down();
  five.advance(1h);
  CHECK(monitor.status().state == worker_state::running);
  CHECK(monitor.status().runs == 1);
  stop.emit(asio::cancellation_type::terminal);
  five.run_until_idle();
  CHECK(ended);
}
