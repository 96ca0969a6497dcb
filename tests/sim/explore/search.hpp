// SPDX-License-Identifier: BSL-1.0
// A search through all paths of a world: depth first, each path lived from the beginning. A world is a function that
// asks a chooser at each point at which something else could happen.
//
// Two options commute if neither changes an object that the other one changes or reads. Paths that differ in the order
// of such options alone end alike, and the search lives one of them (sleep sets, Godefroid 1996). An option sleeps
// where an equal path has taken it, until an option that does not commute with it wakes it. Each state is visited.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/explore/plan.hpp"

namespace holdfast::sim::explore {

/// One bit for each object.
using objects = std::uint64_t;
constexpr objects all_objects = ~objects(0);

/// The bound that an option counts for.
enum class option_kind : std::uint8_t { step, act, delay, fault };

/// One of the things that can happen next.
struct option {
  std::string label;  // the same in each state in which this can happen
  objects changes = all_objects;
  option_kind kind = option_kind::step;
  objects reads = 0;
};

inline bool independent(const option& one, const option& other) noexcept {
  return (one.changes & (other.changes | other.reads)) == 0 && (other.changes & one.reads) == 0;
}

class chooser {
 public:
  /// The index of the option to take. Nothing: other paths cover what can follow, and the world ends at once. Two equal
  /// numbers of states promise that the same can follow.
  virtual std::optional<std::size_t> choose(const std::vector<option>& options,
                                            std::optional<std::uint64_t> state = std::nullopt) = 0;

 protected:
  ~chooser() = default;
};

struct path_end {
  std::string violation;   // empty: none
  bool all_served = true;  // no waiter is left
};

using world = std::function<path_end(chooser&)>;

struct search_bounds {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  std::size_t acts = none, delays = none, faults = none;  // of one path
  std::size_t depth = none;  // later choices are not searched, and the path goes on by first options
  std::size_t paths = none;
  bool reduces = true;               // sleep sets
  bool judges_liveness = false;      // from each state a path must lead to an end with all served; without sleep sets
  std::size_t counter_examples = 1;  // the search ends with so many
};

struct counter_example {
  plan path;
  std::string violation;
};

struct search_result {
  std::uint64_t paths = 0;   // lived to their end
  std::uint64_t cut = 0;     // given up, because others cover them
  std::uint64_t states = 0;  // points of choice
  std::size_t deepest = 0;
  bool exhausted = true;  // neither the bound of paths nor that of counter-examples ended it
  std::vector<counter_example> found;
};

search_result explore(const world& lives, const search_bounds& within = {});

/// Lives one path. `on_choice` gets each option that is taken.
path_end replay(const world& lives, const plan& path, const std::function<void(const option&)>& on_choice = nullptr);

}  // namespace holdfast::sim::explore
