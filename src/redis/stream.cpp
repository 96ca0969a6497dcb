// SPDX-License-Identifier: BSL-1.0
#include "redis/stream.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include <cerrno>

namespace holdfast::redis {

void stream::async_connect(const socket::endpoint_type& to, std::function<void(error_code)> done) {
  auto& s = lowest();
  const auto protocol = to.protocol();
  error_code failed;
  // Asio's own open() leaves the socket to every program that is executed, and a flag that is set later races with
  // fork().
  const int fd = ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
  if (fd < 0)
    failed = error_code(errno, boost::system::system_category());
  else if (s.assign(protocol, fd, failed); failed)
    ::close(fd);
  if (failed) return asio::post(s.get_executor(), [done = std::move(done), failed] { done(failed); });
  s.async_connect(to, std::move(done));
}

stream::tls_stream& stream::secure(asio::ssl::context& context) {
  auto plain = std::move(std::get<socket>(transport_));
  return transport_.emplace<tls_stream>(std::move(plain), context);
}

std::size_t stream::write_now(std::string_view bytes, error_code& failed) {
  if (secured()) return 0;
  auto& s = std::get<socket>(transport_);
  const auto n = ::send(s.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n >= 0) return static_cast<std::size_t>(n);
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
    failed = error_code(errno, boost::system::system_category());
  return 0;
}

stream::input stream::peek() {
  // Records of TLS hide that the server has closed: its farewell is one, and so is a session ticket.
  pollfd closed{lowest().native_handle(), POLLRDHUP, 0};
  if (secured() && ::poll(&closed, 1, 0) > 0) return input::ended;
  char byte;
  const auto n = ::recv(lowest().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n > 0) return input::some;
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? input::none : input::ended;
}

void stream::cancel() {
  error_code ignored;
  lowest().cancel(ignored);
}

void stream::close() {
  error_code ignored;
  lowest().close(ignored);
}

}  // namespace holdfast::redis
