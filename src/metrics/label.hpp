// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>

namespace holdfast::detail {

inline constexpr std::size_t longest_label = 128;
/// Of all that have no series of their own.
inline constexpr std::string_view other = "other";

/// What a label says of any bytes: they are valid UTF-8 without control characters, or every byte that is not is \xNN.
/// Of a long name it says the beginning and "…", longest_label bytes at most. Two names may have the same.
HOLDFAST_EXPORT std::string label_of(std::string_view bytes);

/// Appends a value, which label_of() has made, as it stands between the quotes of the text format.
void append_escaped(std::string& to, std::string_view label);

}  // namespace holdfast::detail
