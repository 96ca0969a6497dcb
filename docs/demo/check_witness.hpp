// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <vector>

#include "stage.hpp"
#include "witness.hpp"

namespace holdfast::demo {

/// Has the stage's judge check what so many tasks have written in so many rounds each: every number from 1 on once, one
/// task inside at a time, each task as often as it should.
void check_witness(stage& on, const std::vector<witness::entry>& lines, int tasks, int rounds);

}  // namespace holdfast::demo
