// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <vector>

#include "unit/sync/engine_fixture.hpp"

namespace holdfast::test {

/// Keeps why each lease that it watches has ended.
struct watching : engine_fixture {
  std::vector<error_code> told;
  detail::cancellable_ptr watch(const lock_call& l) {
    return locks->when_ended(l.value(), [this](error_code why) { told.push_back(why); });
  }
};

}  // namespace holdfast::test
