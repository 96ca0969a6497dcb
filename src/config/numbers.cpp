// SPDX-License-Identifier: BSL-1.0
#include "config/numbers.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace holdfast::detail {

std::optional<long long> parse_number(std::string_view digits) noexcept {
  long long number = 0;
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failed != std::errc{}) return std::nullopt;
  return number;
}

}  // namespace holdfast::detail
