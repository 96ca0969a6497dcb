// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include <chrono>
#include <functional>

#include "redis/io_services.hpp"
#include "redis/transport.hpp"

namespace holdfast::redis {

using stream_socket = asio::basic_stream_socket<asio::generic::stream_protocol>;

/// A byte stream over TCP or a unix socket.
///
/// Decision: a read belongs to the executor below the strand, and its handler enters the strand. A read of the strand
/// would enter it through type-erased executors: 500 instructions and an allocation more for each answer. Operations of
/// several steps are bound to the strand, because their steps in between touch the socket.
class socket_stream final : public stream {
 public:
  explicit socket_stream(const detail::direct_strand& strand)
      : strand_(strand), socket_(strand.any().get_inner_executor()) {}

  /// Opens a socket that executed programs do not inherit, and connects it. Call it before anything else. `done` is
  /// called on the strand, never inside the call.
  void async_connect(const stream_socket::endpoint_type& to, std::function<void(error_code)> done);
  stream_socket& socket() noexcept { return socket_; }

  void async_read_some(asio::mutable_buffer into, handler done) override;
  void async_write(asio::const_buffer bytes, handler done) override;
  std::size_t write_now(std::string_view bytes, error_code& failed) override;
  input peek() override;
  void cancel() override;
  void close() override;

 private:
  const detail::direct_strand strand_;
  stream_socket socket_;
};

/// For TCP: no write waits for more bytes, and the kernel probes a peer after `silence` (0: the system's default). The
/// probes keep a balancer or NAT from forgetting the connection, and end a dead idle one. Data that is not acknowledged
/// for about twice that time ends the connection, too.
void set_tcp_options(stream_socket& socket, std::chrono::milliseconds silence);

/// The state of a socket's receive buffer.
stream::input peek(stream_socket& socket);

}  // namespace holdfast::redis
