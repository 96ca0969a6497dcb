// SPDX-License-Identifier: BSL-1.0
// A failed assertion ends the process, so no search is left to print the path that led there. This report prints it.
#pragma once
#include "sim/explore/small_world.hpp"

namespace holdfast::sim::explore {

/// From now on a process that aborts prints the world and the plan of the thread that aborts, if it lives a path then.
void report_aborts();

/// Lives one path as `live` does, for that report.
path_end live_reported(const setting& of, chooser& decides);

}  // namespace holdfast::sim::explore
