// SPDX-License-Identifier: BSL-1.0
#include "chaos/key_witness.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <utility>

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 50ms;  // a server that is stopped must not keep its witnesses

}  // namespace

key_witness::key_witness(const asio::any_io_executor& on, std::string socket_path)
    : socket_path_(std::move(socket_path)), socket_(on) {}

asio::awaitable<std::optional<long long>> key_witness::ttl(std::string lock) {
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer alarm(socket_.get_executor(), patience);
  const auto first = co_await (ask(std::move(lock)) || alarm.async_wait(asio::use_awaitable));
  const auto* answer = std::get_if<0>(&first);
  if (answer && *answer) co_return *answer;
  boost::system::error_code ignored;
  socket_.close(ignored);  // the answer may still come, and is not the next one's
  co_return std::nullopt;
}

asio::awaitable<std::optional<long long>> key_witness::ask(std::string lock) {
  try {
    if (!socket_.is_open())
      co_await socket_.async_connect(asio::local::stream_protocol::endpoint(socket_path_), asio::use_awaitable);
    const auto question = "PTTL " + lock + "\r\n";
    co_await asio::async_write(socket_, asio::buffer(question), asio::use_awaitable);
    std::string answer;
    co_await asio::async_read_until(socket_, asio::dynamic_buffer(answer), "\r\n", asio::use_awaitable);
    if (answer.starts_with(':')) co_return std::stoll(answer.substr(1));
  } catch (const boost::system::system_error&) {  // it is down, or was told to drop all clients
  }
  co_return std::nullopt;
}

}  // namespace holdfast::chaos
