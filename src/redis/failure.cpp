// SPDX-License-Identifier: BSL-1.0
#include "redis/failure.hpp"

#include <algorithm>
#include <utility>

#include "base/escape.hpp"

namespace holdfast::redis {

namespace {

constexpr std::size_t escaped_at_once = 64;  // detail::escaped() cuts what is longer
constexpr std::size_t longest_quote = 4 * escaped_at_once;

}  // namespace

failure fail(const endpoint& node, errc code, std::string_view cause) {
  return {code, node.to_string().append(": ").append(cause)};
}

errc classify(std::string_view error_reply) {
  static constexpr std::pair<std::string_view, errc> codes[] = {
      {"WRONGPASS", errc::auth_failed},
      {"NOAUTH", errc::auth_failed},
      {"NOPERM", errc::no_permission},
      {"DENIED", errc::no_permission},  // protected mode
      {"LOADING", errc::server_refused},
      {"BUSY", errc::server_refused},
      {"MASTERDOWN", errc::server_refused},
      {"TRYAGAIN", errc::server_refused},
      {"OOM", errc::server_refused},
  };
  const auto word = error_reply.substr(0, error_reply.find(' '));
  for (const auto& [prefix, code] : codes)
    if (word == prefix) return code;
  if (error_reply.find("max number of clients") != std::string_view::npos) return errc::server_refused;
  return errc::protocol_error;
}

std::string quoted(const endpoint& node, std::string_view words) {
  std::string text(words);
  if (!node.password.empty())
    for (auto at = text.find(node.password); at != std::string::npos; at = text.find(node.password, at + 3))
      text.replace(at, node.password.size(), "***");
  std::string out;
  const auto end = std::min(text.size(), longest_quote);
  for (std::size_t at = 0; at < end; at += escaped_at_once) out += detail::escaped(std::string_view(text).substr(at, escaped_at_once));
  if (text.size() > end) out += "…";
  return out;
}

}  // namespace holdfast::redis
