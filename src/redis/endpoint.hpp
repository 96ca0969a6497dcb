// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <holdfast/config.hpp>

namespace holdfast::redis {

/// Where a server listens.
struct address {
  std::string host;  // name or address, IPv6 without brackets; empty: unix socket
  std::uint16_t port = 6379;
  std::string unix_path;  // set: host and port are not used
};

/// Who we are to a server; empty: it asks for nobody.
struct credentials {
  std::string user, password;
};

/// One server and how to introduce ourselves to it: what remains of a config once its URL is read.
struct endpoint {
  address at;
  credentials login;
  bool use_tls = false;
  tls_config tls;
  int db = 0;
  std::string client_name;
  std::chrono::milliseconds connect_timeout{2'000};
  std::chrono::milliseconds reconnect_cap{5'000};
  std::chrono::milliseconds patience{20};  // silence that a connection is forgiven, whatever the timeout of a command
  std::size_t pending_commands = 65'536;

  /// "redis://host:port" or "redis+unix:///path", nothing secret: for texts.
  std::string to_string() const;
};

}  // namespace holdfast::redis
