// SPDX-License-Identifier: BSL-1.0
#include "redis/socket_stream.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include <cerrno>
#include <utility>

namespace holdfast::redis {

void socket_stream::async_connect(const stream_socket::endpoint_type& to, std::function<void(error_code)> done) {
  const auto protocol = to.protocol();
  error_code failed;
  // Asio's own open() leaves the socket to every program that is executed, and a flag that is set later races with
  // fork().
  const int fd = ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
  if (fd < 0)
    failed = error_code(errno, boost::system::system_category());
  else if (socket_.assign(protocol, fd, failed); failed)
    ::close(fd);
  if (failed) return asio::post(socket_.get_executor(), [done = std::move(done), failed] { done(failed); });
  socket_.async_connect(to, std::move(done));
}

void socket_stream::async_read_some(asio::mutable_buffer into, handler done) {
  socket_.async_read_some(into, std::move(done));
}

void socket_stream::async_write(asio::const_buffer bytes, handler done) {
  asio::async_write(socket_, bytes, std::move(done));
}

std::size_t socket_stream::write_now(std::string_view bytes, error_code& failed) {
  const auto n = ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n >= 0) return static_cast<std::size_t>(n);
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
    failed = error_code(errno, boost::system::system_category());
  return 0;
}

stream::input socket_stream::peek() { return redis::peek(socket_); }

void socket_stream::cancel() {
  error_code ignored;
  socket_.cancel(ignored);
}

void socket_stream::close() {
  error_code ignored;
  socket_.close(ignored);
}

stream::input peek(stream_socket& socket) {
  char byte;
  const auto n = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n > 0) return stream::input::some;
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? stream::input::none
                                                                              : stream::input::ended;
}

}  // namespace holdfast::redis
