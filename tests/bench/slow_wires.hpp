// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "support/temp_folder.hpp"

namespace holdfast::bench {

namespace asio = boost::asio;

/// Unix sockets that lead to others, as a network would: what is written arrives so much later. One thread for all of
/// them, because it shares the processors with what is measured.
class slow_wires {
 public:
  explicit slow_wires(std::chrono::nanoseconds one_way) : one_way_(one_way) {}
  slow_wires(const slow_wires&) = delete;
  slow_wires& operator=(const slow_wires&) = delete;
  ~slow_wires() {
    io_.stop();
    thread_.join();
  }

  /// The path of a new one that leads there.
  std::string to(const std::string& there) {
    const auto path = folder_.path() + "/" + std::to_string(ends_++);
    auto at = std::make_shared<acceptor>(io_, socket::protocol_type::endpoint(path));
    asio::post(io_, [this, at, there] { accept(at, there); });
    return path;
  }

 private:
  using socket = asio::local::stream_protocol::socket;
  using acceptor = asio::local::stream_protocol::acceptor;

  struct pair {
    explicit pair(asio::io_context& io) : client(io), server(io) {}
    socket client, server;
  };

  /// From one end to the other.
  class one_direction : public std::enable_shared_from_this<one_direction> {
   public:
    one_direction(std::shared_ptr<pair> of, socket& from, socket& to, std::chrono::nanoseconds takes)
        : of_(std::move(of)), from_(from), to_(to), takes_(takes), next_(from.get_executor()) {}

    void read() {
      from_.async_read_some(asio::buffer(in_),
                            [keep = shared_from_this()](boost::system::error_code failed, std::size_t size) {
                              keep->on_read(failed, size);
                            });
    }

   private:
    struct piece {
      std::chrono::steady_clock::time_point due;
      std::string bytes;  // none: the end
    };

    void on_read(boost::system::error_code failed, std::size_t size) {
      under_way_.push_back({std::chrono::steady_clock::now() + takes_, std::string(in_.data(), failed ? 0 : size)});
      if (under_way_.size() == 1) wait();
      if (!failed) read();
    }
    void wait() {
      next_.expires_at(under_way_.front().due);
      next_.async_wait([keep = shared_from_this()](boost::system::error_code) { keep->deliver(); });
    }
    void deliver() {
      const auto arrived = std::move(under_way_.front());
      under_way_.pop_front();
      boost::system::error_code gone;
      if (arrived.bytes.empty())
        to_.shutdown(socket::shutdown_send, gone);
      else
        asio::write(to_, asio::buffer(arrived.bytes), gone);
      if (!under_way_.empty()) wait();
    }

    const std::shared_ptr<pair> of_;
    socket &from_, &to_;
    const std::chrono::nanoseconds takes_;
    asio::steady_timer next_;
    std::deque<piece> under_way_;
    std::array<char, 65536> in_;
  };

  void accept(const std::shared_ptr<acceptor>& at, const std::string& there) {
    const auto ends = std::make_shared<pair>(io_);
    at->async_accept(ends->client, [this, at, there, ends](boost::system::error_code failed) {
      if (failed) return;
      boost::system::error_code refused;
      ends->server.connect(socket::protocol_type::endpoint(there), refused);
      if (!refused) {
        std::make_shared<one_direction>(ends, ends->client, ends->server, one_way_)->read();
        std::make_shared<one_direction>(ends, ends->server, ends->client, one_way_)->read();
      }
      accept(at, there);
    });
  }

  const std::chrono::nanoseconds one_way_;
  test::temp_folder folder_{"holdfast-wires-"};
  int ends_ = 0;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> open_{io_.get_executor()};
  std::thread thread_{[this] { io_.run(); }};
};

}  // namespace holdfast::bench
