// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/owner.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "support/manual_clock.hpp"
#include "sync/lease_record.hpp"

namespace holdfast::test {

inline std::shared_ptr<detail::claim> make_claim(const detail::clock& clock,
                                                 std::shared_ptr<const std::atomic<bool>> closed) {
  const detail::node_id node = 0;
  return std::make_shared<detail::claim>(clock, std::move(closed), std::make_shared<const detail::lock_keys>("a", "p:"),
                                         detail::owner_field("uuid:1"), std::span(&node, 1), 1);
}

/// A hold on a claim of one share, and its leases.
struct hold_fixture {
  manual_clock clock;
  const std::shared_ptr<std::atomic<bool>> closed = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<detail::claim> on = make_claim(clock, closed);
  const std::shared_ptr<detail::hold> h = std::make_shared<detail::hold>(on, owner(), false);
  std::vector<std::shared_ptr<detail::lease_record>> records;

  bool extend(detail::time_point until) { return on->confirm(on->sole_share(), until); }
  detail::lease_record& lease(detail::terms t) {
    records.push_back(std::make_shared<detail::lease_record>(h, t, clock.now(), std::weak_ptr<detail::core>()));
    h->leases.push_back(records.back().get());
    return *records.back();
  }
};

}  // namespace holdfast::test
