// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/host.hpp"

namespace holdfast::detail {

/// What a URL says; see config::url for the grammar.
struct url_parts {
  enum class scheme {
    server,       // redis://, rediss://
    unix_socket,  // redis+unix://
    sentinel,     // redis+sentinel://, rediss+sentinel://
    cluster,      // redis+cluster://, rediss+cluster://
  };

  struct value {
    std::string key, text;  // text is decoded
  };
  struct span {
    std::size_t begin, length;
  };

  scheme kind = scheme::server;
  bool use_tls = false;
  std::vector<host_port> hosts;  // one of server, none of unix_socket, 1 to 32 of the others
  std::string unix_path;
  std::string primary_name;   // of sentinel: any bytes but blanks and control bytes
  std::vector<value> values;  // the query's, and "user", "password", "db" wherever they stood; no key twice
  std::vector<span> secrets;  // where user information stands in the text: the servers' and the sentinels'

  const std::string* find(std::string_view key) const noexcept;
};

/// Throws holdfast::error(invalid_config). Its text quotes nothing of the URL but the names of its query keys, and
/// those only where no mistake can have moved a piece of a password there.
url_parts parse_url(std::string_view url);

/// The scheme that the text begins with, with its "://"; empty: it begins with none of ours.
std::string_view scheme_of(std::string_view url) noexcept;

}  // namespace holdfast::detail
