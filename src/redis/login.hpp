// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string_view>

#include "base/lease_clock.hpp"
#include "base/random.hpp"
#include "redis/endpoint.hpp"
#include "redis/failure.hpp"

namespace holdfast::redis {

/// The answer of config::credentials for one connection.
struct connection_login {
  credentials user{};
  /// The connection is replaced then: between six and seven eighths of login::valid_for, at random, so that the
  /// connections of many clients are not replaced together.
  detail::time_point replace_at = detail::time_point::max();
  std::optional<failure> failed{};  // nothing may be sent
};

/// Asks the node's login source, which must be set. Its exceptions become a failure.
connection_login ask_for_login(const endpoint& node, detail::time_point now, detail::random_source& random);

/// The reason why Redis cannot be given this user and password; empty: there is none.
std::string_view misconfiguration_of(const credentials& login);

}  // namespace holdfast::redis
