// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <holdfast/config.hpp>

#include "redis/resp.hpp"

namespace holdfast::redis {

/// Where a server listens.
struct address {
  std::string host;           // name or address, IPv6 without brackets; empty: unix socket
  std::uint16_t port = 6379;  // 0: not known yet
  std::string unix_path;      // set: host and port are not used

  friend auto operator<=>(const address&, const address&) = default;
};

/// The mode of a server, as it reports it.
enum class server_mode { standalone, sentinel, cluster };

/// The login at a server; empty: it needs none.
struct credentials {
  std::string user, password;
};

/// config::credentials: each connection asks it for user and password.
using login_source = std::function<holdfast::login(const login_request&)>;

/// One server and the way to introduce ourselves to it: the rest of a config once its URL is read.
struct endpoint {
  address at;
  credentials login;                           // with `logins`: of the connection under way
  std::shared_ptr<const login_source> logins;  // null: `login` stays as it is
  bool use_tls = false;
  tls_config tls;
  int db = 0;
  server_mode expected = server_mode::standalone;  // another one is refused
  bool any_role = false;                           // a replica may answer as well
  std::string client_name;
  std::chrono::milliseconds connect_timeout{2'000};
  std::chrono::milliseconds reconnect_cap{5'000};
  std::chrono::milliseconds silence_limit{20};              // a shorter silence never ends a connection
  std::chrono::milliseconds health_check_interval{10'000};  // as in config; 0: off
  std::size_t pending_commands = 65'536;
  reader_limits limits;

  /// The same for another server.
  endpoint with(address elsewhere) const;

  /// "redis://host:port" or "redis+unix:///path", nothing secret: for texts.
  std::string to_string() const;
};

}  // namespace holdfast::redis
