// SPDX-License-Identifier: BSL-1.0
// A worker on one of N processes, tested with Catch2 and without Redis: it runs, backs off after a failure, and waits
// while another process works.
#define CATCH_CONFIG_MAIN
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <holdfast/keep_running.hpp>
#include <holdfast/testing/server.hpp>
#include <stdexcept>
namespace asio = boost::asio;
using namespace std::chrono_literals;
using holdfast::worker_state;

struct importer_of_a_test {
  importer_of_a_test() {
    auto body = [this](holdfast::lease&) { return import(); };
    asio::co_spawn(io, holdfast::keep_running(redis.mutex("import"), body, {.monitor = &monitor}),
                   asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr) {}));
  }
  ~importer_of_a_test() {
    stop.emit(asio::cancellation_type::terminal);
    server.run_until_idle();
  }
  asio::awaitable<void> import() {  // stands for yours
    if (source_is_gone) throw std::runtime_error("no source");
    co_await server.sleep_for(1h);
  }

  asio::io_context io;
  holdfast::testing::server server{io};
  holdfast::client redis = server.make_client();
  holdfast::worker_monitor monitor;
  asio::cancellation_signal stop;
  bool source_is_gone = false;
};

TEST_CASE_METHOD(importer_of_a_test, "the importer backs off while its source is gone") {
  source_is_gone = true;
  server.run_until_idle();
  CHECK(monitor.status().state == worker_state::backing_off);
  CHECK(monitor.status().last_failure == "no source");
  source_is_gone = false;
  server.advance(100ms);  // the first backoff
  CHECK(monitor.status().state == worker_state::running);
}

TEST_CASE_METHOD(importer_of_a_test, "the importer waits while another process works") {
  server.take_over("import", 1min);
  server.run_until_idle();
  CHECK(monitor.status().state == worker_state::waiting);
  server.advance(61s);
  CHECK(monitor.status().state == worker_state::running);
}
