// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "protocol/kind.hpp"

namespace holdfast::detail {

/// Redisson's RPermitExpirableSemaphore. Its names are permit_keys.
HOLDFAST_EXPORT extern const kind permit_lock;

}  // namespace holdfast::detail
