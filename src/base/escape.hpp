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

/// A name in quotes: as escaped(), and a backslash or a quote in it has a backslash before it. So no name ends its
/// quotes, and two short names never look alike.
HOLDFAST_EXPORT std::string in_quotes(std::string_view bytes, std::size_t limit = 64, char quote = '\'');

}  // namespace holdfast::detail
