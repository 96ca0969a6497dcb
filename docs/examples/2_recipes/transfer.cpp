// SPDX-License-Identifier: BSL-1.0
// Two accounts under one lock of both: all or none, whatever the order in which a transfer names them.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <map>
namespace asio = boost::asio;

using accounts = std::map<std::string, int>;

asio::awaitable<void> transfer(holdfast::client& redis, accounts& all, std::string from, std::string to, int amount) {
  const std::vector<holdfast::mutex> both{redis.mutex("account:" + from), redis.mutex("account:" + to)};
  auto move = [&](holdfast::multi_lease&) -> asio::awaitable<void> {
    const int left = all[from] - amount;
    co_await asio::post(asio::use_awaitable);  // others are at work meanwhile, on other accounts
    all[from] = left;
    all[to] += amount;
  };
  co_await holdfast::with_lock(holdfast::multi_lock(both), move);
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io, {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  accounts all{{"ann", 100}, {"bob", 100}, {"eve", 100}};
  auto start = [&](std::string from, std::string to) {
    asio::co_spawn(io, transfer(redis, all, from, to, 10), [](std::exception_ptr failed) {
      if (failed) std::rethrow_exception(failed);
    });
  };
  for (int i = 0; i < 20; ++i) {
    start("ann", "bob");
    start("bob", "ann");  // the other way round: no deadlock
    start("bob", "eve");
    start("eve", "bob");
    start("ann", "ann");  // one lock, once
  }
  io.run();
  std::cout << "ann " << all["ann"] << ", bob " << all["bob"] << ", eve " << all["eve"] << '\n';
}

// Output:
//   ann 100, bob 100, eve 100
