// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sync/claim/claim.hpp"
#include "sync/hold/engine_parts.hpp"

namespace holdfast::detail {

/// The question that a count answers: does the server have the right count, or does it have the claim at all?
enum class in_question { count, claim };

/// Sends the number of leases that the holder of a claim has. Nobody waits for the answer.
///
/// It promises:
/// - one count is under way at a time, and the next one is the latest;
/// - nothing is sent if the server has the count already, unless the claim itself is in question;
/// - a count that is refused or not answered changes nothing, and the next count corrects it;
/// - without a holder, or after the last unlock, no count is sent and no answer counts;
/// - of a kind without counts nothing is sent.
///
/// Decision: a nested call waits for nothing. The hold knows until when it is valid, and a nested lock() could learn
/// nothing else from Redis. So hold::covers() decides, and the hold gives a lease at once. Redis gets the count
/// afterwards, for clients that look at it, among them Redisson's RLock. A count follows each such lease, so a broken
/// lock is noticed one round trip later. The price: that nested lock() succeeds first, and is lost then.
///
/// The count is absolute, see kind.hpp.
void set_hold_count(const engine_parts& parts, claim& claim, in_question question);

}  // namespace holdfast::detail
