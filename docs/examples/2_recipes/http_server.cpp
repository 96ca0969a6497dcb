// SPDX-License-Identifier: BSL-1.0
// An HTTP server that handles one request for a path at a time, over all its processes: http_server [URL [PORT]], then
// `curl localhost:8080/orders/42`. A second request for the same path waits a second, and is told to come again.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using namespace std::chrono_literals;

asio::awaitable<http::status> handle(holdfast::client& redis, std::string path) {
  auto mutex = redis.mutex(path);
  auto work = [](holdfast::lease&) -> asio::awaitable<void> {  // cancelled should the lock be lost
    asio::steady_timer job(co_await asio::this_coro::executor, 5s);
    co_await job.async_wait(asio::use_awaitable);
  };
  auto got = co_await holdfast::as_result(mutex.try_lock_for(1s));  // every request is an owner of its own
  if (got.has_error()) co_return http::status::service_unavailable;
  if (!*got) co_return http::status::conflict;
  auto again = redis.mutex(path, (*got)->owner());  // with_lock re-enters what is held
  const auto done = co_await holdfast::as_result(holdfast::with_lock(again, work));
  co_return done ? http::status::ok : http::status::internal_server_error;
}

asio::awaitable<void> serve(beast::tcp_stream stream, holdfast::client& redis) {
  beast::flat_buffer buffer;
  http::request<http::string_body> request;
  co_await http::async_read(stream, buffer, request, asio::use_awaitable);
  const auto status = co_await handle(redis, std::string(request.target()));
  http::response<http::empty_body> response{status, request.version()};
  response.prepare_payload();
  co_await http::async_write(stream, response, asio::use_awaitable);
}

asio::awaitable<void> accept(holdfast::client& redis, unsigned short port) {
  const auto here = co_await asio::this_coro::executor;
  asio::ip::tcp::acceptor acceptor(here, {asio::ip::address_v4::loopback(), port});
  for (;;) {
    beast::tcp_stream stream(co_await acceptor.async_accept(asio::use_awaitable));
    asio::co_spawn(here, serve(std::move(stream), redis), asio::detached);
  }
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  asio::co_spawn(io, accept(redis, argc > 2 ? static_cast<unsigned short>(std::stoi(argv[2])) : 8080), asio::detached);
  io.run();
}
