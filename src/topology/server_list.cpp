// SPDX-License-Identifier: BSL-1.0
#include "topology/server_list.hpp"

namespace holdfast::detail {

reach_by reach_of(const std::vector<node_mapping>& node_map) {
  if (node_map.empty()) return {};
  return [node_map](const redis::address& announced) {
    for (const auto& mapping : node_map)
      if (mapping.announced == announced) return mapping.reach;
    return announced;
  };
}

}  // namespace holdfast::detail
