// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>

namespace holdfast::detail {

/// For texts and logs: printable ASCII as it is, every other byte as \xNN; of more than `limit` bytes the first `limit`
/// and "…".
HOLDFAST_EXPORT std::string escaped(std::string_view bytes, std::size_t limit = 64);

}  // namespace holdfast::detail
