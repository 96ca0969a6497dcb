// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <holdfast/config.hpp>

#include "config/settings.hpp"
#include "config/url.hpp"

// What belongs to one server, to several primaries, to sentinels and to a cluster. What does not is refused:
// holdfast::error(invalid_config), whose text names field and cause.
namespace holdfast::detail {

/// By the scheme of its URL.
deployment deployment_of(const url_parts& url) noexcept;

/// Refuses a field, or a key of the URL, that has no meaning for such servers, also where it says the default.
void check_meaning(const config& config, deployment kind, const url_parts& url);

/// Refuses a primary of a red_lock that sentinels or a cluster would name.
void check_is_one_server(const url_parts& url);

/// Reads config::node_map.
std::vector<node_mapping> read_node_map(const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace holdfast::detail
