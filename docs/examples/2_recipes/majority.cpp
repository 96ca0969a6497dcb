// SPDX-License-Identifier: BSL-1.0
// A lock that outlives the loss of a server: two of three independent ones must grant it.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
using namespace std::chrono_literals;
using urls = std::vector<std::string>;

void lose(const std::string& url) {  // stands for a power cut
  asio::local::stream_protocol::iostream server(
      asio::local::stream_protocol::endpoint(url.substr(std::string_view("redis+unix://").size())));
  server << "SHUTDOWN NOSAVE\r\n" << std::flush;
  server.get();  // until it is gone
}

asio::awaitable<void> report(holdfast::client& redis, urls servers) {
  co_await holdfast::red_lock::initialise(redis);  // once, by an operator: the servers are new
  co_await redis.connect();                        // a client's first step: an attempt has little time for that
  auto mutex = redis.red_lock("report");
  auto lease = co_await mutex.lock();
  lose(servers[2]);
  co_await lease.renew();
  std::cout << std::boolalpha << "one of three servers is lost, and it is held: " << lease.held() << '\n';
  co_await lease.unlock();

  auto again = co_await mutex.lock({.ttl = 10s});
  std::cout << "it was given back, and is held once more: " << again.held() << '\n';
  lose(servers[1]);
  std::cout << "two are lost, and it is held for " << (again.valid_for() > 5s ? "some seconds" : "too short") << '\n';
  const auto other = co_await holdfast::as_result(redis.red_lock("other").try_lock());
  std::cout << "another lock: " << (other ? "granted" : other.error().message()) << '\n';
  co_await redis.shutdown(100ms);  // what the lost servers have of a lock ends with its TTL
}

int main(int argc, char** argv) {
  asio::io_context io;
  const urls servers(argv + 1, argv + argc);
  holdfast::client redis{io, {.red_lock = {.primaries = servers}}};
  asio::co_spawn(io, report(redis, servers), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   one of three servers is lost, and it is held: true
//   it was given back, and is held once more: true
//   two are lost, and it is held for some seconds
//   another lock: no quorum
