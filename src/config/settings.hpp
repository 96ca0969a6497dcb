// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/config.hpp>
#include <holdfast/export.hpp>

#include "topology/server_list.hpp"

namespace holdfast::detail {

/// The largest min_replicas: several times what managed services offer, and far below a port or a year that stands in
/// the wrong place.
constexpr unsigned most_replicas = 15;

/// A config whose URL was read and whose fields were checked: what the client works with.
struct settings : server_list {
  config values;  // URL parts merged in; users, passwords, URLs and node_map cleared
};

/// Throws holdfast::error: invalid_config or invalid_ttl, the text names field and cause, never a secret.
HOLDFAST_EXPORT settings resolve(config config);

}  // namespace holdfast::detail
