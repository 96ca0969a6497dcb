// SPDX-License-Identifier: BSL-1.0
#include "redis/failure.hpp"

#include <cstddef>
#include <utility>

#include "base/escape.hpp"

namespace holdfast::redis {

namespace {

constexpr std::size_t longest_quote = 256;

}  // namespace

failure fail(const endpoint& node, errc code, std::string_view cause) {
  return {code, node.to_string().append(": ").append(cause)};
}

errc classify(std::string_view error_reply) {
  static constexpr std::pair<std::string_view, errc> codes[] = {
      {"WRONGPASS", errc::auth_failed},      {"NOAUTH", errc::auth_failed},  {"NOPERM", errc::no_permission},
      {"DENIED", errc::no_permission},  // protected mode
      {"LOADING", errc::server_refused},     {"BUSY", errc::server_refused}, {"MASTERDOWN", errc::server_refused},
      {"TRYAGAIN", errc::server_refused},    {"OOM", errc::server_refused},  {"NOREPLICAS", errc::server_refused},
      {"MISCONF", errc::server_refused},  // also in answer to PING
      {"CLUSTERDOWN", errc::server_refused},
  };
  const auto word = error_reply.substr(0, error_reply.find(' '));
  for (const auto& [prefix, code] : codes)
    if (word == prefix) return code;
  if (error_reply.find("max number of clients") != std::string_view::npos) return errc::server_refused;
  return errc::protocol_error;
}

bool shows_work(const reply& r) { return !r.is_error() || !failure{classify(r.text), {}}.mends_itself(); }

std::string quoted(const endpoint& node, std::string_view words) {
  std::string text(words);
  if (!node.login.password.empty())
    for (auto at = text.find(node.login.password); at != std::string::npos; at = text.find(node.login.password, at + 3))
      text.replace(at, node.login.password.size(), "***");
  return detail::escaped(text, longest_quote);
}

}  // namespace holdfast::redis
