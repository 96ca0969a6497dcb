// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "redis/resp.hpp"

namespace holdfast::bench {

namespace asio = boost::asio;

/// The least that an Asio client can do: writes what it is given, and counts the lines that come back, each of which
/// must be a reply, or parses them.
/// Commands that are sent while a write is under way, or from inside a reply, go out together.
class bare_client {
 public:
  /// `parse`: hiredis reads the replies.
  bare_client(asio::io_context& io, const std::string& path, bool parse) : socket_(io), parse_(parse) {
    socket_.connect(asio::local::stream_protocol::endpoint(path));
  }
  /// To a port of 127.0.0.1.
  bare_client(asio::io_context& io, std::uint16_t port, bool parse) : socket_(io), parse_(parse) {
    socket_.connect(asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), port));
    socket_.set_option(asio::ip::tcp::no_delay(true));
  }

  /// `on_reply` is called for each reply; it may send.
  void start(std::function<void()> on_reply) {
    on_reply_ = std::move(on_reply);
    read();
  }
  void stop() { socket_.close(); }

  void send(const std::string& command) {
    next_ += command;
    if (!in_reply_) flush();
  }
  void flush() {
    if (writing_ || next_.empty()) return;
    writing_ = true;
    current_.clear();
    std::swap(current_, next_);
    asio::async_write(socket_, asio::buffer(current_), [this](boost::system::error_code failed, std::size_t) {
      if (failed) return;
      writing_ = false;
      flush();
    });
  }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(in_), [this](boost::system::error_code failed, std::size_t size) {
      if (failed) return;
      in_reply_ = true;
      parse_ ? parse(size) : count_lines(size);
      in_reply_ = false;
      flush();
      if (socket_.is_open()) read();
    });
  }
  void parse(std::size_t size) {
    parser_.feed({in_.data(), size});
    while (const auto* const r = parser_.next()) {
      if (r->is_error()) throw std::runtime_error(r->text);
      on_reply_();
    }
  }
  /// Each reply is one line.
  void count_lines(std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      if (at_start_ && (in_[i] == '-' || in_[i] == '*')) throw std::runtime_error("an error reply, or an array");
      at_start_ = in_[i] == '\n';
      if (at_start_) on_reply_();
    }
  }

  asio::generic::stream_protocol::socket socket_;
  std::function<void()> on_reply_;
  std::string current_, next_;
  std::array<char, 65536> in_;
  bool writing_ = false, in_reply_ = false, at_start_ = true;
  const bool parse_;
  redis::reader parser_;
};

}  // namespace holdfast::bench
