// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim::explore {

/// The index of each option that a path takes. After the last one it takes the first option each time.
using plan = std::vector<std::size_t>;

/// "0*7.2.1": seven times the first option, then the third, then the second. "-": always the first option.
std::string to_text(const plan& of);
/// Nothing: the text is no plan.
std::optional<plan> plan_of(std::string_view text);

}  // namespace holdfast::sim::explore
