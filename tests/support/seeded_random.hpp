// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>

#include "testing/sim/seeded_random.hpp"

namespace holdfast::test {

using sim::seeded_random;

/// Always the same number: 0 takes the jitter away, up_to() then gives 0.
class fixed_random final : public detail::random_source {
 public:
  explicit fixed_random(std::uint64_t number = 0) noexcept : number_(number) {}
  std::uint64_t next() override { return number_; }

 private:
  std::uint64_t number_;
};

}  // namespace holdfast::test
