// SPDX-License-Identifier: BSL-1.0
// One consumer for each of four partitions, on two processes. Each keeps four workers running, and a worker takes any
// partition that nobody consumes. When a process drains, the other one takes its partitions over.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <map>
namespace asio = boost::asio;
using namespace std::chrono_literals;

struct queue {  // stands for a topic with partitions
  std::map<std::string, int> consumers;
  int left = 400, done = 0;
  bool alone = true;  // each consumer on its partition
};

asio::awaitable<void> consume(queue& from, const std::string& partition, bool& stops) {
  asio::steady_timer job(co_await asio::this_coro::executor);
  if (++from.consumers[partition] > 1) from.alone = false;
  for (; !stops && from.left-- > 0; ++from.done) {
    job.expires_after(1ms);
    co_await job.async_wait(asio::use_awaitable);
  }
  --from.consumers[partition];
}

asio::awaitable<void> worker(holdfast::client& redis, queue& from, bool& stops) {
  std::vector<holdfast::mutex> all;
  for (int n = 0; n < 4; ++n) all.push_back(redis.mutex("partition:" + std::to_string(n)));
  auto body = [&](holdfast::lease& held) { return consume(from, held.name(), stops); };
  co_await holdfast::keep_running(holdfast::any_of(all), body);
}

asio::awaitable<void> life(holdfast::client& redis, queue& from, int jobs_left) {
  bool stops = false;
  asio::steady_timer look(co_await asio::this_coro::executor);
  for (int n = 0; n < 4; ++n) asio::co_spawn(look.get_executor(), worker(redis, from, stops), asio::detached);
  for (; from.left > jobs_left; co_await look.async_wait(asio::use_awaitable)) look.expires_after(1ms);
  stops = true;               // the bodies return,
  co_await redis.drain(10s);  // no other run begins, and the workers end
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::config settings{.url = argc > 1 ? argv[1] : "redis://localhost"};
  holdfast::client one{io, settings}, two{io, settings};
  queue from;
  asio::co_spawn(io, life(one, from, 200), asio::detached);
  asio::co_spawn(io, life(two, from, 0), asio::detached);
  io.run();
  std::cout << from.done << " jobs, " << (from.alone ? "one consumer" : "two consumers") << " for a partition\n";
}

// Output:
//   400 jobs, one consumer for a partition
