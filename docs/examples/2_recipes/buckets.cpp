// SPDX-License-Identifier: BSL-1.0
// 400 jobs in 20 buckets, drained by 30 workers that know nothing of each other: each takes any bucket that nobody has,
// and waits for the first that is given back where all are taken.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <map>
namespace asio = boost::asio;

struct bucket {  // stands for a table's partition, a stream or a list
  int jobs = 0, done = 0, workers = 0, most_workers = 0;
};
using buckets = std::map<std::string, bucket>;

asio::awaitable<void> drain(bucket& b) {
  b.most_workers = std::max(b.most_workers, ++b.workers);
  while (b.jobs > 0) {
    co_await asio::post(asio::use_awaitable);  // the job; others are at work meanwhile
    --b.jobs;
    ++b.done;
  }
  --b.workers;
}

asio::awaitable<void> worker(holdfast::client& redis, buckets& all) {
  for (;;) {
    std::vector<holdfast::mutex> full;
    for (const auto& [name, b] : all)
      if (b.jobs > 0) full.push_back(redis.mutex(name));
    if (full.empty()) co_return;
    auto lease = co_await holdfast::any_of(full).lock();
    co_await drain(all.at(lease.name()));  // perhaps empty by now: another had it before
    co_await lease.unlock();
  }
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io, {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  buckets all;
  for (int i = 0; i < 20; ++i) all["bucket:" + std::to_string(i)].jobs = 20;
  for (int i = 0; i < 30; ++i)
    asio::co_spawn(io, worker(redis, all), [](std::exception_ptr failed) {
      if (failed) std::rethrow_exception(failed);
    });
  io.run();
  int done = 0, most_workers = 0;
  for (const auto& [name, b] : all) {
    done += b.done;
    most_workers = std::max(most_workers, b.most_workers);
  }
  std::cout << done << " jobs done, at most " << most_workers << " worker in a bucket\n";
}

// Output:
//   400 jobs done, at most 1 worker in a bucket
