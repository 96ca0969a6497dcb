// SPDX-License-Identifier: BSL-1.0
#include "support/net.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>
#include <system_error>

namespace holdfast::test {
namespace {

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error("unix path too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

sockaddr_in tcp_address(const std::string& ipv4, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, ipv4.c_str(), &address.sin_addr) != 1)
    throw std::runtime_error("not an IPv4 address: " + ipv4);
  return address;
}

unique_fd new_socket(int family, int flags = 0) {
  unique_fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd) throw_errno("socket");
  return fd;
}

template <class Address>
const sockaddr* generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

unique_fd connect_unix(const std::string& path) {
  auto fd = new_socket(AF_UNIX);
  const auto address = unix_address(path);
  if (::connect(fd.get(), generic(address), sizeof address) != 0) throw_errno("connect to " + path);
  return fd;
}

unique_fd connect_tcp(const std::string& ipv4, std::uint16_t port) {
  auto fd = new_socket(AF_INET);
  const auto address = tcp_address(ipv4, port);
  if (::connect(fd.get(), generic(address), sizeof address) != 0)
    throw_errno("connect to " + ipv4 + ":" + std::to_string(port));
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

unique_fd listen_unix(const std::string& path) {
  auto fd = new_socket(AF_UNIX, SOCK_NONBLOCK);
  const auto address = unix_address(path);
  ::unlink(path.c_str());
  if (::bind(fd.get(), generic(address), sizeof address) != 0) throw_errno("bind " + path);
  if (::listen(fd.get(), 512) != 0) throw_errno("listen");
  return fd;
}

unique_fd listen_tcp(std::uint16_t port) {
  auto fd = new_socket(AF_INET, SOCK_NONBLOCK);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto address = tcp_address("127.0.0.1", port);
  if (::bind(fd.get(), generic(address), sizeof address) != 0) throw_errno("bind 127.0.0.1:" + std::to_string(port));
  if (::listen(fd.get(), 512) != 0) throw_errno("listen");
  return fd;
}

std::uint16_t free_loopback_port() {
  static thread_local std::mt19937 random{std::random_device{}()};
  std::uniform_int_distribution<int> ports(10'000, 21'999);
  for (int i = 0; i < 1000; ++i) {
    const auto port = static_cast<std::uint16_t>(ports(random));
    try {
      listen_tcp(port);
      return port;
    } catch (const std::system_error&) {
      continue;  // taken
    }
  }
  throw std::runtime_error("no free port on 127.0.0.1");
}

std::string percent_encoded(const std::string& text, std::string_view keep) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || keep.find(static_cast<char>(c)) != keep.npos)
      out += static_cast<char>(c);
    else
      (out += '%').append({digits[c >> 4], digits[c & 0xf]});
  }
  return out;
}

}  // namespace holdfast::test
