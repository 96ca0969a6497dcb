// SPDX-License-Identifier: BSL-1.0
// A leader with a term, and a router that always knows where it is. Each process calls keep_running() as a candidate,
// with its address. The router sees each new leader, each new value, and the time without a leader.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;

asio::awaitable<void> candidate(holdfast::client& redis, std::string address, const std::string& routed_to) {
  const auto chief = redis.election("chief");
  asio::steady_timer work(redis.get_executor());
  auto body = [&](holdfast::lease& lead) -> asio::awaitable<void> {
    // Give lead.token() to every resource: it refuses an older term.
    co_await chief.proclaim(lead, address + ", ready");
    while (routed_to != address + ", ready") {
      work.expires_after(std::chrono::milliseconds(1));
      co_await work.async_wait(asio::use_awaitable);
    }
  };
  co_await holdfast::keep_running(chief.candidate(address), body, {.restart = holdfast::restart_policy::never});
}

asio::awaitable<void> route(holdfast::client& redis, std::string& last) {
  const auto chief = redis.election("chief");
  for (auto now = co_await chief.leader();; now = co_await chief.next(now)) {
    if (now) last = now->value;
    if (now && now->value == "10.0.0.2:80, ready") break;  // a real router goes on
  }
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  asio::io_context io;
  holdfast::client one(io, {.url = url}), two(io, {.url = url}), router(io, {.url = url});
  std::string last;
  auto rethrow = [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  };
  asio::co_spawn(io, route(router, last), rethrow);
  auto in_turn = [&]() -> asio::awaitable<void> {
    co_await candidate(one, "10.0.0.1:80", last);
    co_await candidate(two, "10.0.0.2:80", last);
  };
  asio::co_spawn(io, in_turn, rethrow);
  io.run();
  std::cout << "the last leader: " << last << '\n';
}

// Output:
//   the last leader: 10.0.0.2:80, ready
