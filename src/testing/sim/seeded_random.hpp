// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>

#include "base/random.hpp"

namespace holdfast::sim {

/// The same numbers for the same seed, on every machine (splitmix64).
class seeded_random final : public detail::random_source {
 public:
  explicit seeded_random(std::uint64_t seed = 1) noexcept : state_(seed) {}

  std::uint64_t next() override {
    auto z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast::sim
