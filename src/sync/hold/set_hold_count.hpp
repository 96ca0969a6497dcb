// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sync/claim/claim.hpp"
#include "sync/hold/engine_parts.hpp"

namespace holdfast::detail {

/// Whether the server has the right count, or whether it has the claim at all.
enum class in_question { count, claim };

/// Tells the server how many leases the holder of a claim has, and nobody waits for that: one count at a time, the
/// latest. Nothing is sent where the server has it already, unless the claim itself is in question: a lease that was
/// given without asking the server wants to hear whether it is there. A count that is refused or not answered changes
/// nothing; it is told with the next. Once the claim has no holder, or one that gives it back, no count is sent, and no
/// answer means anything.
void set_hold_count(const engine_parts& parts, claim& claim, in_question question);

}  // namespace holdfast::detail
