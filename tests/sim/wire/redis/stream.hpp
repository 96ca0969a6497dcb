// SPDX-License-Identifier: BSL-1.0
// Stands in for src/redis/stream.hpp in the simulator: the library's own link, connection, pubsub and standalone are
// compiled on top of it.
#pragma once
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <holdfast/error.hpp>

#include "redis/services.hpp"
#include "sim/network.hpp"

namespace holdfast::redis {

/// The client's end of a simulated connection; never TLS.
class stream {
 public:
  using socket = asio::basic_stream_socket<asio::generic::stream_protocol, redis::strand>;
  using tls_stream = asio::ssl::stream<socket>;
  enum class input { none, some, ended };

  explicit stream(std::shared_ptr<sim::wire> w) : wire_(std::move(w)) {}
  ~stream() { close(); }

  bool secured() const noexcept { return false; }
  tls_stream& tls() { throw std::logic_error("no TLS here"); }

  template <class Handler>
  void async_read_some(asio::mutable_buffer into, Handler&& done) {
    wire_->read(into, std::forward<Handler>(done));
  }
  template <class Handler>
  void async_write(asio::const_buffer bytes, Handler&& done) {
    error_code failed;
    if (wire_->ended())
      failed = asio::error::broken_pipe;
    else
      wire_->write({static_cast<const char*>(bytes.data()), bytes.size()});
    asio::post(wire_->home(),
               [done = std::forward<Handler>(done), failed, size = bytes.size()] { done(failed, failed ? 0 : size); });
  }
  std::size_t write_now(std::string_view bytes, error_code& failed) {
    if (wire_->ended()) return failed = asio::error::broken_pipe, 0;
    const auto size = wire_->take_at_once(bytes.size());
    wire_->write(bytes.substr(0, size));
    return size;
  }

  input peek() { return wire_->has_input() ? input::some : wire_->ended() ? input::ended : input::none; }
  void cancel() { wire_->cancel(); }
  void close() { wire_->close(); }

 private:
  std::shared_ptr<sim::wire> wire_;
};

}  // namespace holdfast::redis
