// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::detail {

/// Where a server listens, as a person writes it.
struct host_port {
  std::string host;  // IPv6 without brackets
  std::uint16_t port = 0;

  bool operator==(const host_port&) const = default;
};

/// "host", "host:port", "[IPv6]:port", "[IPv6%25zone]"; without a port it is `usual_port`.
/// Throws holdfast::error(invalid_config), whose text begins with the field and quotes nothing.
host_port parse_host(std::string_view text, std::uint16_t usual_port, const std::string& field);

}  // namespace holdfast::detail
