// SPDX-License-Identifier: BSL-1.0
// A life of locks on a private server, and after each step what metrics writes: for readers that are not ours. Between
// the texts there is a line "# step NAME", which the format takes for a comment.
#include <holdfast/holdfast.hpp>
#include <holdfast/metrics.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "support/real_redis.hpp"
#include "support/run_coro.hpp"

namespace {

namespace asio = boost::asio;
using namespace holdfast;
using namespace std::chrono_literals;

asio::awaitable<void> sleep(std::chrono::milliseconds time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

/// Until the metrics have a line that begins so: what it waits for is on its way.
asio::awaitable<void> until(const metrics& m, std::string line) {
  for (;;) {
    std::ostringstream text;
    m.write(text);
    if (text.str().find('\n' + line + '\n') != std::string::npos) co_return;
    co_await sleep(2ms);
  }
}

asio::awaitable<void> wait_and_keep(client& redis, std::string name, std::optional<lease>& kept) {
  kept = co_await redis.mutex(name).lock();
}

asio::awaitable<void> ask_once(client& redis, std::string name) { (void)co_await redis.mutex(name).try_lock(); }

asio::awaitable<void> run_once(lease&) { co_return; }

void step(const char* name, const metrics& m) {
  std::cout << "# step " << name << '\n';
  m.write(std::cout);
}

asio::awaitable<void> live(client& one, client& two, metrics& m, test::real_redis& server) {
  const auto io = co_await asio::this_coro::executor;
  const auto in_flight = "holdfast_connection_in_flight{role=\"command\",node=\"" + server.unix_url() + "\"} ";
  const auto settled = [&](const char* name) -> asio::awaitable<void> {
    co_await until(m, in_flight + "0");  // what nobody waits for, as the count of a re-entry, takes its time
    step(name, m);
  };
  step("begin", m);
  owner task;
  auto outer = co_await one.mutex("a", task).lock();
  auto inner = co_await one.mutex("a", task).lock();
  step("re-entered", m);
  std::optional<lease> second, third;
  asio::co_spawn(io, wait_and_keep(one, "a", second), asio::detached);
  asio::co_spawn(io, wait_and_keep(one, "a", third), asio::detached);
  co_await until(m, R"(holdfast_lock_waiters{kind="mutex",lock="a"} 2)");
  step("two wait", m);
  co_await inner.unlock();
  co_await outer.unlock();
  co_await until(m, R"(holdfast_lock_waiters{kind="mutex",lock="a"} 1)");
  step("passed on", m);
  co_await second->unlock();
  co_await until(m, R"(holdfast_lock_waiters{kind="mutex",lock="a"} 0)");
  co_await settled("passed on again");
  co_await ask_once(two, "a");
  server.stop();
  asio::co_spawn(io, ask_once(two, "a"), asio::detached);
  co_await until(m, in_flight + "1");
  step("in flight", m);
  server.cont();
  co_await until(m, in_flight + "0");
  co_await third->unlock();
  auto odd = co_await two.fenced_mutex(std::string("a\"b\\c\nd\xff\0e", 10)).lock();
  auto simple = co_await one.simple_mutex("ä€😀").lock();
  auto beyond = co_await two.mutex("the fourth name").lock();
  co_await settled("two clients");
  co_await one.mutex("the fourth name").force_unlock();
  co_await until(m, R"(holdfast_lock_held{kind="mutex",lock="other"} 0)");
  auto short_lived = co_await one.mutex("a").lock({.ttl = 20ms});
  co_await short_lived.lost();
  co_await settled("lost");
  co_await keep_running(one.mutex("the fourth name"), run_once, {.restart = restart_policy::never});
  m.fence_rejected();
  co_await one.shutdown(1s);
  co_await settled("one shut down");
  co_await two.shutdown(1s);
  step("end", m);
}

}  // namespace

int main() {
  using test::real_redis;
  if (!real_redis::available()) {
    std::cout << "skipped: no Redis server\n";
    return 77;
  }
  real_redis server;
  asio::io_context io;
  const auto numbers = std::make_shared<metrics>(metrics::options{.lock_names = 3});
  // A holder hears within a third of its TTL that somebody has broken its lock.
  const config settings{.url = server.url(), .ttl = 3s, .observer = numbers};
  client one(io, settings), two(io, settings);
  test::run(io, live(one, two, *numbers, server));
}
