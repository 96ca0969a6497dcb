// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <string>

namespace holdfast::cli {

struct listen_address {
  boost::asio::ip::address address;
  std::uint16_t port = 0;  // 0: any that is free
};

/// "127.0.0.1:8787", "[::1]:8787" or "localhost:8787".
///
/// Decision: the page has neither users nor TLS. An address that other machines reach is refused, unless a proxy has
/// both.
/// Throws usage_error.
listen_address read_listen_address(const std::string& text, bool is_behind_proxy);

/// The address as a Host and a URL have it.
std::string host_text(const boost::asio::ip::address& address);

/// Throws boost::system::system_error, for a port that is taken.
void open(boost::asio::ip::tcp::acceptor& acceptor, const listen_address& at);

}  // namespace holdfast::cli
