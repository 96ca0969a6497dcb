// SPDX-License-Identifier: BSL-1.0
#include "base/random.hpp"

#include <unistd.h>

#include <cstdlib>

namespace holdfast::detail {

lease_clock::duration random_source::up_to(lease_clock::duration limit) {
  if (limit.count() <= 0) return {};
  const auto span = static_cast<std::uint64_t>(limit.count()) + 1;
  return lease_clock::duration{static_cast<lease_clock::rep>(next() % span)};
}

std::uint64_t system_random::next() {
  if (used_ == pool_.size()) {
    if (::getentropy(pool_.data(), sizeof pool_) != 0) std::abort();
    used_ = 0;
  }
  return pool_[used_++];
}

}  // namespace holdfast::detail
