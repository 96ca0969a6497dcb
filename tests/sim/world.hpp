// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>

#include "sim/coverage.hpp"

namespace holdfast::sim {

/// What one seed came to.
struct verdict {
  std::uint64_t seed = 0;
  std::uint64_t hash = 0;  // of all that happened
  std::size_t acts = 0, faults = 0, clients = 0;
  std::string violation;  // empty: none
};

/// Lives one seed from the first act to the last key. `trace` (null: none) gets what happened, to read.
verdict run_seed(std::uint64_t seed, coverage& met, std::ostream* trace = nullptr);

}  // namespace holdfast::sim
