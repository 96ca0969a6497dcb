// SPDX-License-Identifier: BSL-1.0
// What the observer hears, in the log of a program that uses spdlog: a loss is an error, what may become one a warning.
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <memory>
namespace asio = boost::asio;
using kind = holdfast::event_kind;

struct spdlog_events final : holdfast::observer {
  void on(const holdfast::event& e) noexcept override {
    const bool error = e.kind == kind::lost || e.kind == kind::release_failed;
    const bool warning = e.kind == kind::renewal_failed || e.kind == kind::suspended || e.kind == kind::outage;
    const auto level = error ? spdlog::level::err : warning ? spdlog::level::warn : spdlog::level::debug;
    std::string name(e.name);  // raw bytes: a line feed would forge a line
    for (char& c : name)
      if (static_cast<unsigned char>(c) < 0x20) c = '?';
    spdlog::log(level, "{} lock={} {}", to_string(e.kind), name, e.detail);
  }
};

asio::awaitable<void> work(holdfast::client& redis) {
  auto lease = co_await redis.mutex("orders:42\nforged").lock({.ttl = std::chrono::milliseconds(50)});
  co_await lease.lost();  // it is not renewed
  co_await redis.mutex("orders:43").lock();
  co_await redis.shutdown(std::chrono::seconds(1));
}

int main(int argc, char** argv) {
  auto log = std::make_shared<spdlog::logger>("locks", std::make_shared<spdlog::sinks::ostream_sink_st>(std::cout));
  log->set_pattern("%l %v");
  spdlog::set_default_logger(log);  // its level is info: grants and releases are not logged
  asio::io_context io;
  holdfast::client redis{
      io, {.url = argc > 1 ? argv[1] : "redis://localhost", .observer = std::make_shared<spdlog_events>()}};
  asio::co_spawn(io, work(redis), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   error lost lock=orders:42?forged its TTL was over, and nobody wanted it to be renewed
