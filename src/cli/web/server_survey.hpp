// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>

#include <string>

#include "cli/server/session.hpp"
#include "config/settings.hpp"

namespace holdfast::cli {

/// The servers that have locks, as a JSON array: address, version, round trip, and the findings of `doctor` that need
/// no more than INFO.
asio::awaitable<std::string> survey_servers(network& over, const detail::settings& settings);

}  // namespace holdfast::cli
