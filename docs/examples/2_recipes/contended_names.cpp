// SPDX-License-Identifier: BSL-1.0
// Which locks do we wait for most? An observer of fifteen lines counts who found others before it, and prints the ten
// most contended names.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <map>
#include <vector>
namespace asio = boost::asio;

struct contention final : holdfast::observer {
  void on(const holdfast::event& e) noexcept override {  // one call at a time, on the client's strand
    if (e.waiters > 0 || e.kind == holdfast::event_kind::not_acquired) ++met[std::string(e.name)];
  }
  void print_ten() const {
    std::vector<std::pair<int, std::string>> most;
    for (const auto& [name, times] : met) most.emplace_back(times, name);
    std::sort(most.rbegin(), most.rend());
    most.resize(std::min<std::size_t>(most.size(), 10));
    for (const auto& [times, name] : most) std::cout << times << " times: " << name << '\n';
  }
  std::map<std::string, int> met;
};

asio::awaitable<void> work(holdfast::client& redis, std::string name) {
  auto lease = co_await redis.mutex(name).lock();
  co_await lease.unlock();
}

int main(int argc, char** argv) {
  asio::io_context io;
  auto seen = std::make_shared<contention>();
  holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost", .observer = seen}};
  for (int aisle = 11; aisle < 23; ++aisle)  // twelve names; the higher the number, the more want it at the same time
    for (int task = 10; task < aisle; ++task)
      asio::co_spawn(io, work(redis, "aisle:" + std::to_string(aisle)), asio::detached);
  io.run();
  seen->print_ten();
}

// Output:
//   11 times: aisle:22
//   10 times: aisle:21
//   9 times: aisle:20
//   8 times: aisle:19
//   7 times: aisle:18
//   6 times: aisle:17
//   5 times: aisle:16
//   4 times: aisle:15
//   3 times: aisle:14
//   2 times: aisle:13
