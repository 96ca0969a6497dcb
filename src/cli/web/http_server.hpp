// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "cli/web/event_feed.hpp"
#include "cli/web/request_gate.hpp"

namespace holdfast::cli {

struct http_answer {
  unsigned status = 200;
  std::string_view type = "application/json";
  std::shared_ptr<const std::string> body{};
  std::string nonce{};         // of a page's script and style
  std::string_view allowed{};  // the value of Allow
};

/// The pages behind an http_server.
class http_site {
 public:
  virtual gate_verdict judge(const request_head& request) const = 0;
  /// `body`: that of a POST.
  virtual asio::awaitable<http_answer> answer(route to, std::string body) = 0;
  virtual event_feed& feed() = 0;
  /// The first event of each reader.
  virtual std::string greeting() const = 0;

 protected:
  ~http_site() = default;
};

/// HTTP/1.1 with one request for each connection, and Server-Sent Events.
///
/// Decision: everything that a client may cause is bounded: the connections, the bytes of a request, the time of its
/// head, the time of each write. At the limit of connections no other is accepted until one ends.
class http_server {
 public:
  static constexpr std::size_t most_connections = event_feed::most_readers + 64;

  /// `acceptor`: listens.
  http_server(asio::ip::tcp::acceptor acceptor, http_site& site);
  ~http_server();

  /// Accepts connections, until it is cancelled.
  asio::awaitable<void> run();
  /// Ends all connections.
  asio::awaitable<void> close();

 private:
  class connection;

  asio::awaitable<void> serve(asio::ip::tcp::socket socket);

  http_site& site_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer room_;  // cancelled when a connection ends
  std::set<connection*> connections_;
};

}  // namespace holdfast::cli
