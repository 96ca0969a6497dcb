// SPDX-License-Identifier: BSL-1.0
#include "sim/explore/state_graph.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim::explore {

state_graph::state state_graph::state_at(plan path, std::optional<std::uint64_t> number, const expenses& spent) {
  if (number) {
    const auto [known, is_new] = numbered_.try_emplace({*number, spent}, paths_.size());
    if (!is_new) return known->second;
  }
  paths_.push_back(std::move(path));
  comes_from_.emplace_back();
  return paths_.size() - 1;
}

std::optional<plan> state_graph::stuck() const {
  std::vector<bool> leads_to_end(paths_.size());
  for (auto open = served_; !open.empty();) {
    const auto at = open.back();
    open.pop_back();
    if (leads_to_end[at]) continue;
    leads_to_end[at] = true;
    open.insert(open.end(), comes_from_[at].begin(), comes_from_[at].end());
  }
  const auto found = std::ranges::find(leads_to_end, false);
  if (found == leads_to_end.end()) return std::nullopt;
  return paths_[static_cast<std::size_t>(found - leads_to_end.begin())];
}

}  // namespace holdfast::sim::explore
