// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include <functional>
#include <string_view>
#include <utility>
#include <variant>

#include <holdfast/error.hpp>

#include "redis/services.hpp"

namespace holdfast::redis {

/// A byte stream over TCP, a unix socket, or TLS over TCP. Used on the strand only; at most one read and one write at a
/// time. Must live until the handlers of both were called, also after close().
class stream {
 public:
  using socket = asio::basic_stream_socket<asio::generic::stream_protocol, redis::strand>;
  using tls_stream = asio::ssl::stream<socket>;
  /// What a look at the receive buffer shows, without taking anything out.
  enum class input { none, some, ended };

  explicit stream(const redis::strand& s) : transport_(std::in_place_type<socket>, s) {}

  /// Opens a socket, which no program inherits that this process executes, and connects it. Before anything else.
  /// `done` is called on the strand, never inside the call.
  void async_connect(const socket::endpoint_type& to, std::function<void(error_code)> done);
  /// Makes it TLS. Before any I/O but the connect.
  tls_stream& secure(asio::ssl::context& context);
  socket& lowest() { return secured() ? std::get<tls_stream>(transport_).next_layer() : std::get<socket>(transport_); }
  bool secured() const noexcept { return transport_.index() == 1; }
  tls_stream& tls() { return std::get<tls_stream>(transport_); }

  template <class Handler>
  void async_read_some(asio::mutable_buffer into, Handler&& done) {
    if (secured())
      std::get<tls_stream>(transport_).async_read_some(into, std::forward<Handler>(done));
    else
      std::get<socket>(transport_).async_read_some(into, std::forward<Handler>(done));
  }
  template <class Handler>
  void async_write(asio::const_buffer bytes, Handler&& done) {
    if (secured())
      asio::async_write(std::get<tls_stream>(transport_), bytes, std::forward<Handler>(done));
    else
      asio::async_write(std::get<socket>(transport_), bytes, std::forward<Handler>(done));
  }
  /// Writes what the kernel takes at once, without waiting; nothing over TLS.
  std::size_t write_now(std::string_view bytes, error_code& failed);

  input peek();
  /// Ends the pending read and write with operation_aborted; the stream stays usable.
  void cancel();
  void close();

 private:
  std::variant<socket, tls_stream> transport_;
};

}  // namespace holdfast::redis
