// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <string>

#include "bench/scenario.hpp"

namespace holdfast::bench {

/// Pairs a second against how many are under way, and the time of a hand-over against how many contend, ours beside the
/// baselines: what plots.py draws. One JSON line for each point, and one about what was measured.
void sweep(const plan& p, const std::function<void(const std::string&)>& say);

}  // namespace holdfast::bench
