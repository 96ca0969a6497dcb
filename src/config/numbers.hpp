// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string_view>

/// Numbers as a person writes them in a URL or an environment variable.
namespace holdfast::detail {

constexpr bool is_digit(char byte) noexcept { return byte >= '0' && byte <= '9'; }

/// Decimal digits alone, no sign; nothing on anything else and on overflow.
std::optional<long long> parse_number(std::string_view digits) noexcept;

}  // namespace holdfast::detail
