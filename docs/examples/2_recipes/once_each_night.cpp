// SPDX-License-Identifier: BSL-1.0
// A report, once each night, by one of three processes that all wake at 2:00. A lock alone does not give "once": a
// process that comes a moment later finds it free again. It keeps the others waiting; a mark that stays says that the
// work is done.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <set>
namespace asio = boost::asio;
using namespace std::chrono_literals;

struct database {  // stands for yours, where the report goes
  int reports = 0;
  std::set<std::string> nights;  // a table with a unique key
};

asio::awaitable<void> alone(holdfast::client& redis, database& db) {
  auto lease = co_await redis.mutex("report").lock();
  ++db.reports;
}

asio::awaitable<void> once(holdfast::client& redis, database& db, std::string night) {
  auto mutex = redis.mutex("report:" + night);
  auto body = [&](holdfast::lease&) -> asio::awaitable<void> {  // cancelled should the lock be lost
    if (db.nights.contains(night)) co_return;                   // first look, under the lock
    ++db.reports;
    db.nights.insert(night);  // with the report, in one transaction: the unique key refuses a second one
    co_return;
  };
  // Not try_lock(): if the one at work dies, its lock ends with the TTL, and the next in line does the work.
  co_await holdfast::with_lock(mutex, body);
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  asio::io_context io;
  database careless, careful;
  holdfast::client processes[] = {holdfast::client{io, {.url = url}}, holdfast::client{io, {.url = url}},
                                  holdfast::client{io, {.url = url}}};
  auto rethrow = [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  };
  for (auto& redis : processes) {
    asio::co_spawn(io, alone(redis, careless), rethrow);
    asio::co_spawn(io, once(redis, careful, "2026-11-22"), rethrow);
  }
  io.run();
  std::cout << "a lock alone: " << careless.reports << " reports\n"
            << "a lock and a mark: " << careful.reports << " report\n";
}

// Output:
//   a lock alone: 3 reports
//   a lock and a mark: 1 report
