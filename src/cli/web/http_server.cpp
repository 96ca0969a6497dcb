// SPDX-License-Identifier: BSL-1.0
#include "cli/web/http_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>

#include <array>
#include <chrono>
#include <utility>

namespace holdfast::cli {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using std::chrono::seconds;

constexpr std::size_t most_head = 8 * 1024, most_body = 64 * 1024;
constexpr std::size_t most_ignored = 4 * 1024 * 1024;  // bytes of a refused request
constexpr int send_buffer = 64 * 1024;                 // of the kernel, for each reader
constexpr seconds request_time{5}, write_time{10}, ignore_time{1};

std::string head_of(const http_answer& answer, bool has_length) {
  const auto status = static_cast<http::status>(answer.status);
  std::string head = "HTTP/1.1 " + std::to_string(answer.status) + ' ' + std::string(http::obsolete_reason(status));
  head.append("\r\nContent-Type: ").append(answer.type);
  if (has_length) head += "\r\nContent-Length: " + std::to_string(answer.body->size());
  if (!has_length) head += "\r\nX-Accel-Buffering: no";  // a proxy passes each event on at once
  if (!answer.allowed.empty()) head.append("\r\nAllow: ").append(answer.allowed);
  if (answer.status == 503) head += "\r\nRetry-After: 5";
  return head +
         "\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff"
         "\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\nCross-Origin-Opener-Policy: same-origin"
         "\r\nCross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: " +
         security_policy(answer.nonce) + "\r\n\r\n";
}

http_answer plain(unsigned status, std::string_view text) {
  return {.status = status,
          .type = "text/plain; charset=utf-8",
          .body = std::make_shared<const std::string>(std::string(text) + '\n')};
}

/// The status for a request that could not be read; 0: nobody waits for an answer.
unsigned status_of_request(const error_code& failed) {
  if (failed == http::error::header_limit || failed == http::error::buffer_overflow) return 431;
  if (failed == http::error::body_limit) return 413;
  return failed.category() == make_error_code(http::error::bad_version).category() &&
                 failed != http::error::end_of_stream && failed != http::error::partial_message
             ? 400
             : 0;
}

request_head head_of(const http::request<http::string_body>& request) {
  request_head head{.method = request.method_string(), .target = request.target()};
  const auto [begin, end] = request.equal_range(http::field::host);
  for (auto field = begin; field != end; ++field) head.hosts.emplace_back(field->value());
  head.origin = request[http::field::origin];
  head.content_type = request[http::field::content_type];
  head.token = request["X-Holdfast-Token"];
  return head;
}

}  // namespace

class http_server::connection {
 public:
  connection(asio::ip::tcp::socket socket, http_site& site) : stream_(std::move(socket)), site_(site) {}

  asio::awaitable<void> run() {
    http::request_parser<http::string_body> parser;
    parser.header_limit(most_head);
    parser.body_limit(most_body);
    stream_.expires_after(request_time);
    error_code failed;
    co_await http::async_read_header(stream_, buffer_, parser, asio::redirect_error(asio::use_awaitable, failed));
    if (failed) {
      co_await refuse_unread(failed);
      co_return;
    }
    const auto verdict = site_.judge(head_of(parser.get()));
    if (verdict.status != 200) {
      auto refusal = plain(verdict.status, verdict.reason);
      refusal.allowed = verdict.allowed;
      co_await finish(refusal);
      co_return;
    }
    co_await http::async_read(stream_, buffer_, parser, asio::redirect_error(asio::use_awaitable, failed));
    if (failed) {
      co_await refuse_unread(failed);
    } else if (verdict.to == route::events) {
      co_await stream_events();
    } else {
      const auto answer = co_await site_.answer(verdict.to, std::move(parser.get().body()));
      co_await finish(answer);
    }
  }

  void close() {
    error_code ignored;
    stream_.socket().close(ignored);
  }

 private:
  asio::awaitable<bool> write(const http_answer& answer) {
    const auto head = head_of(answer, true);
    const std::array<asio::const_buffer, 2> bytes{asio::buffer(head), asio::buffer(*answer.body)};
    co_return co_await write_all(bytes);
  }

  /// False: the client takes no bytes.
  template <class Buffers>
  asio::awaitable<bool> write_all(Buffers bytes) {
    stream_.expires_after(write_time);
    error_code failed;
    co_await asio::async_write(stream_, bytes, asio::redirect_error(asio::use_awaitable, failed));
    co_return !failed;
  }

  /// Answers, and reads what the client still sends: a socket that is closed over it would take the answer back.
  asio::awaitable<void> finish(const http_answer& answer) {
    if (!co_await write(answer)) co_return;
    error_code failed;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, failed);
    stream_.expires_after(ignore_time);
    std::array<char, 4096> room{};
    for (std::size_t ignored = 0; !failed && ignored < most_ignored;)
      ignored +=
          co_await stream_.async_read_some(asio::buffer(room), asio::redirect_error(asio::use_awaitable, failed));
  }

  asio::awaitable<void> refuse_unread(error_code failed) {
    const auto status = status_of_request(failed);
    if (status == 0) co_return;
    const auto answer = plain(status, failed.message());
    co_await finish(answer);
  }

  asio::awaitable<void> stream_events() {
    const auto reader = site_.feed().subscribe();
    if (!reader) {
      const auto answer = plain(503, "too many pages are open");
      co_await write(answer);
      co_return;
    }
    error_code ignored;
    stream_.socket().set_option(asio::socket_base::send_buffer_size(send_buffer), ignored);
    const http_answer answer{.type = "text/event-stream"};
    auto head = head_of(answer, false) + site_.greeting();
    const auto first = asio::buffer(std::as_const(head));
    bool goes_on = co_await write_all(first);
    while (goes_on && !reader->is_closed()) {
      const auto event = co_await reader->next();
      const auto bytes = event ? asio::buffer(*event) : asio::buffer(heartbeat_);
      goes_on = co_await write_all(bytes);
    }
  }

  static constexpr std::string_view heartbeat_ = ": \n\n";

  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_{most_head + most_body};
  http_site& site_;
};

http_server::http_server(asio::ip::tcp::acceptor acceptor, http_site& site)
    : site_(site), acceptor_(std::move(acceptor)), room_(acceptor_.get_executor()) {}

http_server::~http_server() = default;

asio::awaitable<void> http_server::run() {
  constexpr std::chrono::milliseconds pause{100};
  for (;;) {
    error_code failed;
    if (connections_.size() >= most_connections) {
      room_.expires_at(asio::steady_timer::time_point::max());
      co_await room_.async_wait(asio::redirect_error(asio::use_awaitable, failed));
      continue;
    }
    asio::ip::tcp::socket socket(acceptor_.get_executor());
    co_await acceptor_.async_accept(socket, asio::redirect_error(asio::use_awaitable, failed));
    if (failed == asio::error::operation_aborted) co_return;
    if (failed) {  // no descriptor is left
      room_.expires_after(pause);
      co_await room_.async_wait(asio::redirect_error(asio::use_awaitable, failed));
    } else {
      asio::co_spawn(acceptor_.get_executor(), serve(std::move(socket)), asio::detached);
    }
  }
}

asio::awaitable<void> http_server::serve(asio::ip::tcp::socket socket) {
  connection client(std::move(socket), site_);
  connections_.insert(&client);
  try {
    co_await client.run();
  } catch (const std::exception&) {
    // Nobody is left who could be answered.
  }
  connections_.erase(&client);
  room_.cancel();
}

asio::awaitable<void> http_server::close() {
  error_code ignored;
  acceptor_.close(ignored);
  site_.feed().close();
  for (auto* client : connections_) client->close();
  while (!connections_.empty()) {
    room_.expires_at(asio::steady_timer::time_point::max());
    co_await room_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

}  // namespace holdfast::cli
