// SPDX-License-Identifier: BSL-1.0
#include "redis/login.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace holdfast::redis {
namespace {

// A shorter validity would make nothing but connections.
constexpr milliseconds least_validity{1'000};

detail::time_point replacement_time(milliseconds valid_for, detail::time_point now, detail::random_source& random) {
  if (valid_for == milliseconds{}) return detail::time_point::max();
  const auto eighth = std::max(valid_for, least_validity) / 8;
  const auto earliest = detail::saturating_add(now, 6 * eighth);
  return earliest == detail::time_point::max() ? earliest : detail::saturating_add(earliest, random.up_to(eighth));
}

}  // namespace

connection_login ask_for_login(const endpoint& node, detail::time_point now, detail::random_source& random) try {
  const auto& at = node.at;
  const bool local = !at.unix_path.empty();
  auto answer = (*node.logins)({.host = local ? at.unix_path : at.host,
                                .port = local ? std::uint16_t{} : at.port,
                                .sentinel = node.expected == server_mode::sentinel});
  connection_login given{{std::move(answer.user), std::move(answer.password)},
                         replacement_time(answer.valid_for, now, random)};
  if (const auto misconfiguration = misconfiguration_of(given.user); !misconfiguration.empty())
    given.failed = fail(node, errc::auth_failed, "from config::credentials: " + std::string(misconfiguration));
  return given;
} catch (...) {  // its text may contain a secret
  return {.failed = fail(node, errc::auth_failed, "config::credentials has thrown an exception")};
}

std::string_view misconfiguration_of(const credentials& login) {
  constexpr std::string_view line_breaks("\r\n\0", 3);
  if (login.user.find_first_of(line_breaks) != std::string::npos) return "user contains a line break or a NUL";
  if (login.password.find_first_of(line_breaks) != std::string::npos) return "password contains a line break or a NUL";
  return {};
}

}  // namespace holdfast::redis
