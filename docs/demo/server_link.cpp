// SPDX-License-Identifier: BSL-1.0
#include "server_link.hpp"

#include <unistd.h>

#include <atomic>
#include <stdexcept>

#include <holdfast/config.hpp>

#include "support/net.hpp"

namespace holdfast::demo {

using holdfast::detail::parse_url;
using holdfast::detail::url_parts;

server_link::server_link(const std::string& url, const std::string& folder) {
  const auto server = parse_url(url);
  try {
    if (server.kind == url_parts::scheme::unix_socket) {
      connection_.emplace(server.unix_path);
    } else {
      static std::atomic<int> number = 0;
      gate_.emplace(folder + "/link-" + std::to_string(::getpid()) + "-" + std::to_string(number++), server);
      connection_.emplace(gate_->path());
    }
    const auto* user = server.find("user");
    const auto* password = server.find("password");
    if (user != nullptr)
      (*this)("AUTH", *user, password != nullptr ? *password : "");
    else if (password != nullptr)
      (*this)("AUTH", *password);
    if (const auto* db = server.find("db")) (*this)("SELECT", *db);
    (*this)("PING");
  } catch (const std::exception& failed) {
    throw std::runtime_error("no connection to " + redacted(url) + ": " + failed.what());
  }
}

std::string url_through(const std::string& socket_path, const std::string& url) {
  const auto server = parse_url(url);
  const auto encoded = [&](const char* key) {
    const auto* text = server.find(key);
    return text != nullptr ? test::percent_encoded(*text) : std::string();
  };
  const auto user = encoded("user"), password = encoded("password"), db = encoded("db");
  auto result = std::string("redis+unix://");
  if (!user.empty() || !password.empty()) result += user + (password.empty() ? "" : ":" + password) + "@";
  result += test::percent_encoded(socket_path, "/");
  return db.empty() ? result : result + "?db=" + db;
}

std::string channel_of(const std::string& lock) {
  return "redisson_lock__channel:" + (lock.find('{') == lock.npos ? "{" + lock + "}" : lock);
}

}  // namespace holdfast::demo
