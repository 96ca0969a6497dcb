// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sync/claim.hpp"
#include "sync/hold_services.hpp"

namespace holdfast::detail {

/// Tells the server how many leases the holder of a claim has, and nobody waits for that: one count at a time, the
/// latest. Nothing is sent where the server has it already, unless the `claim` itself is in question: who was given a
/// lease without being asked for wants to hear whether it is there. A count that is refused changes nothing; it is
/// written again with the next. Once the claim has no holder, or one that gives it back, no count is sent or repeated,
/// and no answer means anything.
enum class in_question { count, claim };
void recount(const hold_services& with, claim& c, in_question what);

}  // namespace holdfast::detail
