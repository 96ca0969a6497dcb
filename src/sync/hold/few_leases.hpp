// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/assert.hpp"

namespace holdfast::detail {

struct lease_record;

/// The leases of a hold, in the order in which they were granted. Most holds have one, and that one needs no list.
class few_leases {
 public:
  std::span<lease_record* const> all() const noexcept {
    return more_ ? std::span<lease_record* const>(*more_) : std::span(&sole_, sole_ ? 1 : 0);
  }
  bool empty() const noexcept { return all().empty(); }
  void add(lease_record& lease) {
    if (!more_) {
      if (!sole_) return static_cast<void>(sole_ = &lease);
      more_ = std::make_unique<std::vector<lease_record*>>(1, sole_);
    }
    more_->push_back(&lease);
  }
  /// The lease is in the list.
  void remove(const lease_record& lease) noexcept {
    if (!more_) {
      HOLDFAST_ASSERT(sole_ == &lease);
      sole_ = nullptr;
      return;
    }
    const auto place = std::find(more_->begin(), more_->end(), &lease);
    HOLDFAST_ASSERT(place != more_->end());
    more_->erase(place);
  }

 private:
  lease_record* sole_ = nullptr;
  std::unique_ptr<std::vector<lease_record*>> more_;  // all leases, once there have been two; else null
};

}  // namespace holdfast::detail
