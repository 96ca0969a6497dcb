// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <vector>

#include "sim/explore/small_world.hpp"

namespace holdfast::sim::explore {

/// Each small world that is searched.
const std::vector<setting>& all_worlds();

}  // namespace holdfast::sim::explore
