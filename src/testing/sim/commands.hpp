// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "testing/sim/database.hpp"

namespace holdfast::sim {

/// The commands on data: those that may be called from scripts too. Replies and error texts are Redis'.
reply run_command(database&, const arguments&);
/// Whether there is such a command.
bool is_data_command(std::string_view lower_case_name);
/// What a node of a cluster looks at before it runs a command: its keys, or the channels of sharded messages.
struct keys_of_command {
  std::vector<std::string> keys{};
  bool channels = false;
};
keys_of_command keys_of(const arguments&);

}  // namespace holdfast::sim
