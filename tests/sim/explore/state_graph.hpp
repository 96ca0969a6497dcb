// SPDX-License-Identifier: BSL-1.0
// The states that a search has seen, and the steps between them: is there a state from which nothing leads to an end
// with all waiters served?
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/explore/plan.hpp"

namespace holdfast::sim::explore {

class state_graph {
 public:
  using state = std::size_t;

  /// The part of each bound that a path has spent.
  using expenses = std::array<std::size_t, 3>;

  /// The state at the end of `path`. Without a number, or with other expenses, it is a new one.
  state state_at(plan path, std::optional<std::uint64_t> number, const expenses& spent);
  void add_step(state from, state to) { comes_from_[to].push_back(from); }
  /// A path ended there.
  void add_end(state at, bool all_served) {
    if (all_served) served_.push_back(at);
  }
  /// The path to the first state from which no end with all served can be reached.
  std::optional<plan> stuck() const;

 private:
  std::map<std::pair<std::uint64_t, expenses>, state> numbered_;
  std::vector<plan> paths_;
  std::vector<std::vector<state>> comes_from_;
  std::vector<state> served_;
};

}  // namespace holdfast::sim::explore
