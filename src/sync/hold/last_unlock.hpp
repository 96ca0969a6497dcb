// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "base/lease_clock.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/handlers.hpp"

namespace holdfast::detail {

/// An unlock of the last lease of a hold. If a change of the count is under way, it waits for its turn.
struct last_unlock {
  milliseconds ttl;   // of the hold at the call
  unsigned replicas;  // that the hold wanted, and that have the claim
  time_point called;
  time_point answer_by;
  done_handler done;
};

}  // namespace holdfast::detail
