// SPDX-License-Identifier: BSL-1.0
#include "redis/socket_stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace holdfast::redis {

void socket_stream::async_connect(const stream_socket::endpoint_type& to, std::function<void(error_code)> done) {
  const auto protocol = to.protocol();
  error_code failed;
  // Asio's own open() lets every executed program inherit the socket, and a flag that is set later races with fork().
  const int fd = ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
  if (fd < 0)
    failed = error_code(errno, boost::system::system_category());
  else if (socket_.assign(protocol, fd, failed); failed)
    ::close(fd);
  if (failed) return asio::post(strand_.any(), [done = std::move(done), failed] { done(failed); });
  socket_.async_connect(to, asio::bind_executor(strand_.any(), std::move(done)));
}

void socket_stream::async_read_some(asio::mutable_buffer into, handler done) {
  socket_.async_read_some(into, [this, done = std::move(done)](const error_code& failed, std::size_t size) {
    strand_.dispatch([done, failed, size] { done(failed, size); });  // a copy: this one keeps the stream until then
  });
}

void socket_stream::async_write(asio::const_buffer bytes, handler done) {
  asio::async_write(socket_, bytes, asio::bind_executor(strand_.any(), std::move(done)));
}

std::size_t socket_stream::write_now(std::string_view bytes, error_code& failed) {
  const auto size = ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (size >= 0) return static_cast<std::size_t>(size);
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

void set_tcp_options(stream_socket& socket, std::chrono::milliseconds silence) {
  using std::chrono::seconds;
  const auto set = [fd = socket.native_handle()](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof value);  // the socket is used without it, if it is refused
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  if (silence.count() == 0) return;
  constexpr int probes = 3;
  const auto idle = std::max<seconds>(std::chrono::ceil<seconds>(silence), seconds{1});
  const auto between = std::max<seconds>(idle / probes, seconds{1});
  set(IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(idle.count()));
  set(IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(between.count()));
  set(IPPROTO_TCP, TCP_KEEPCNT, probes);
  const auto unacknowledged = std::chrono::milliseconds(idle + probes * between);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(unacknowledged.count()));
}

stream::input peek(stream_socket& socket) {
  char byte;
  const auto size = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (size > 0) return stream::input::some;
  return size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? stream::input::none
                                                                                 : stream::input::ended;
}

}  // namespace holdfast::redis
