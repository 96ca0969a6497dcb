// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string>

#include "config/url.hpp"
#include "gate.hpp"
#include "support/raw_client.hpp"

namespace holdfast::demo {

/// A plain connection to the server of a URL, logged in, on its database: sees what is stored there without the
/// library's help.
class server_link {
 public:
  /// `folder`: for a socket file. Not for rediss://. Throws with a clear text.
  server_link(const std::string& url, const std::string& folder);

  template <class... Arguments>
  test::value operator()(const Arguments&... arguments) {
    return (*connection_)(arguments...);
  }

 private:
  std::optional<gate> gate_;  // raw_client knows unix sockets and IPv4 addresses; the gate finds any host
  std::optional<test::raw_client> connection_;
};

/// The same server, user, password and database as in `url`, through a unix socket.
std::string url_through(const std::string& socket_path, const std::string& url);

/// What Redisson and holdfast publish releases on.
std::string channel_of(const std::string& lock);

}  // namespace holdfast::demo
