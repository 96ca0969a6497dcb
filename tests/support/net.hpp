// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "support/fd.hpp"

namespace holdfast::test {

/// Both throw std::system_error.
unique_fd connect_unix(const std::string& path);
unique_fd connect_tcp(const std::string& ipv4, std::uint16_t port);

/// Binds and listens, on a path (what stands there is removed) or on 127.0.0.1. Not blocking, close-on-exec.
unique_fd listen_unix(const std::string& path);
unique_fd listen_tcp(std::uint16_t port);

/// A port of 127.0.0.1 that nobody uses, below the ephemeral range, as is port + 10000 (a cluster's bus): no outgoing
/// connection takes it while its server is down. Another process may still be quicker: retry when binding fails.
std::uint16_t free_loopback_port();

/// For URLs: letters, digits, '.', '-', '_' and what is in `keep` stay.
std::string percent_encoded(const std::string& text, std::string_view keep = {});

}  // namespace holdfast::test
