// SPDX-License-Identifier: BSL-1.0
// A nightly report on one of three processes: each keeps the worker running, and the one that has the lock works. When
// its process ends, another one goes on with the next night. The mark of each night says that its report is done.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <set>
#include <vector>
namespace asio = boost::asio;
using namespace std::chrono_literals;

struct database {  // stands for yours, where the reports go
  int nights = 0, reports = 0;
  std::set<int> done, workers;
};

struct process {  // stands for a process on a host of its own
  asio::awaitable<void> report_nightly(database& db) {
    asio::steady_timer until_two(co_await asio::this_coro::executor);
    while (db.nights < 6) {
      until_two.expires_after(5ms);  // a short night
      co_await until_two.async_wait(asio::use_awaitable);
      if (!db.done.insert(++db.nights).second) continue;
      ++db.reports;  // with the mark, in one transaction
      db.workers.insert(number);
      if (db.nights == 3) co_await redis.shutdown(1s);  // the process ends, and its lock
    }
  }

  asio::awaitable<void> run(database& db) {
    auto body = [&](holdfast::lease&) { return report_nightly(db); };
    co_await holdfast::keep_running(redis.mutex("report"), body, {.restart = holdfast::restart_policy::on_failure});
  }

  int number;
  holdfast::client redis;
};

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  asio::io_context io;
  database db;
  std::vector<process> processes;
  for (int n = 1; n <= 3; ++n) processes.push_back({n, holdfast::client{io, {.url = url}}});
  for (auto& each : processes) asio::co_spawn(io, each.run(db), [](std::exception_ptr) {});  // or shut down
  io.run();
  std::cout << db.nights << " nights, " << db.reports << " reports, by " << db.workers.size() << " processes\n";
}

// Output:
//   6 nights, 6 reports, by 2 processes
