// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>

#include "base/lease_clock.hpp"

namespace holdfast::detail {

/// The turn that one claim serves: from its grant, through the hand-overs, to its release. handoff_window decides by it
/// whether the claim may be passed once more. A client may have several claims of one name, each with a turn of its
/// own.
struct stint {
  time_point began{};         // the grant
  std::uint32_t waiting = 0;  // the waiters of this client at that time
  std::uint32_t passed = 0;   // hand-overs since
};

}  // namespace holdfast::detail
