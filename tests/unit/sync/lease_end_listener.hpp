// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <vector>

#include "unit/sync/engine_fixture.hpp"

namespace holdfast::test {

/// Keeps the reason for which each lease that it watches has ended.
struct lease_end_listener : engine_fixture {
  std::vector<error_code> ends;
  detail::cancellable_ptr watch(const lock_call& lease) {
    return locks->when_ended(lease.value(), [this](error_code reason) { ends.push_back(reason); });
  }
};

}  // namespace holdfast::test
