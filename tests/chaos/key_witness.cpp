// SPDX-License-Identifier: BSL-1.0
#include "chaos/key_witness.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <functional>
#include <utility>

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 50ms;  // a server that is stopped must not keep its witnesses

}  // namespace

struct key_witness::server {
  server(const asio::any_io_executor& on, std::string path) : socket_path(std::move(path)), socket(on) {}

  const std::string socket_path;
  asio::local::stream_protocol::socket socket;
  std::optional<long long> ttl{};  // what it said last
};

key_witness::key_witness(const asio::any_io_executor& on, const std::vector<std::string>& socket_paths) {
  for (const auto& path : socket_paths) servers_.emplace_back(on, path);
}

key_witness::~key_witness() = default;

asio::awaitable<std::optional<long long>> key_witness::ttl(std::string lock) {
  using namespace asio::experimental::awaitable_operators;
  if (servers_.empty()) co_return std::nullopt;
  for (auto& s : servers_) s.ttl.reset();
  asio::steady_timer alarm(servers_.front().socket.get_executor(), patience);
  co_await (ask_from(servers_.begin(), lock) || alarm.async_wait(asio::use_awaitable));
  std::vector<long long> all;
  for (auto& s : servers_) {
    if (s.ttl) {
      all.push_back(*s.ttl);
    } else {
      boost::system::error_code ignored;
      s.socket.close(ignored);  // the answer may still come, and is not the next one's
    }
  }
  if (all.size() < servers_.size()) co_return std::nullopt;
  std::sort(all.begin(), all.end(), std::greater<>());
  co_return all[all.size() / 2];
}

asio::awaitable<void> key_witness::ask_from(servers::iterator next, const std::string& lock) {
  using namespace asio::experimental::awaitable_operators;
  auto& first = *next++;
  if (next == servers_.end())
    co_await ask(first, lock);
  else
    co_await (ask(first, lock) && ask_from(next, lock));
}

asio::awaitable<void> key_witness::ask(server& of, const std::string& lock) {
  try {
    if (!of.socket.is_open())
      co_await of.socket.async_connect(asio::local::stream_protocol::endpoint(of.socket_path), asio::use_awaitable);
    const auto question = "PTTL " + lock + "\r\n";
    co_await asio::async_write(of.socket, asio::buffer(question), asio::use_awaitable);
    std::string answer;
    co_await asio::async_read_until(of.socket, asio::dynamic_buffer(answer), "\r\n", asio::use_awaitable);
    if (answer.starts_with(':')) of.ttl = std::stoll(answer.substr(1));
  } catch (const boost::system::system_error&) {  // it is down, or was told to drop all clients
  }
}

}  // namespace holdfast::chaos
