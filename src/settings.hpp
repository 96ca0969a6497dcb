// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/config.hpp>

#include "redis/endpoint.hpp"

namespace holdfast::detail {

/// A config whose URL was read and whose fields were checked: what the client works with.
struct settings {
  redis::endpoint server;
  config values;  // URL parts merged in; user, password and url cleared
};

/// Throws holdfast::error: invalid_config or invalid_ttl, the text names field and cause, never a secret.
settings resolve(config c);

}  // namespace holdfast::detail
