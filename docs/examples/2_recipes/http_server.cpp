// SPDX-License-Identifier: BSL-1.0
// http_server [URL [PORT]], then `curl -X POST localhost:8080/orders/42`: one request for an order at a time, over all
// processes, and an answer within 3 s whatever becomes of Redis. SIGTERM: what was begun is finished and answered, and
// no lock is left behind.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "shop.hpp"
namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::use_awaitable;
using boost::beast::tcp_stream;
using tcp_acceptor = asio::ip::tcp::acceptor;
using namespace std::chrono_literals;

asio::awaitable<void> serve(tcp_stream stream, shop& orders) {
  boost::beast::flat_buffer buffer;
  http::request<http::string_body> request;
  stream.expires_after(2s);
  co_await http::async_read(stream, buffer, request, use_awaitable);
  const auto [status, text] = co_await orders.ship(std::string(request.target()));
  http::response<http::string_body> response{http::int_to_status(status), request.version(), text + '\n'};
  response.prepare_payload();
  stream.expires_after(2s);
  co_await http::async_write(stream, response, use_awaitable);
}

asio::awaitable<void> accept(tcp_acceptor& acceptor, shop& orders) {
  std::cout << "listening on " << acceptor.local_endpoint().port() << std::endl;
  for (boost::system::error_code ended; acceptor.is_open();) {
    tcp_stream stream(co_await acceptor.async_accept(asio::redirect_error(use_awaitable, ended)));
    if (!ended) asio::co_spawn(acceptor.get_executor(), serve(std::move(stream), orders), asio::detached);
  }
}

asio::awaitable<void> end_at_sigterm(tcp_acceptor& acceptor, holdfast::client& redis) {
  asio::signal_set signals(acceptor.get_executor(), SIGINT, SIGTERM);
  co_await signals.async_wait(use_awaitable);
  std::cout << "draining" << std::endl;
  co_await redis.drain(5s);  // a request that holds goes on, and may re-enter; a new one is told 503
  acceptor.close();          // run() returns when the last answer is written
}

int main(int argc, char** argv) {
  asio::io_context io;
  holdfast::client redis{io.get_executor(), {.url = argc > 1 ? argv[1] : "redis://localhost", .key_prefix = "locks:"}};
  shop orders(redis);
  const auto port = static_cast<asio::ip::port_type>(argc > 2 ? std::stoi(argv[2]) : 8080);
  tcp_acceptor acceptor(io, {asio::ip::address_v4::loopback(), port});
  asio::co_spawn(io, accept(acceptor, orders), asio::detached);
  asio::co_spawn(io, end_at_sigterm(acceptor, redis), asio::detached);
  io.run();
}
