// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/set_hold_count.hpp"

#include <new>
#include <utility>

#include "sync/command/send_once.hpp"
#include "sync/hold/hold.hpp"

namespace holdfast::detail {
namespace {

/// The holder of the claim; null if there is none, or if its last unlock was called.
hold* keeper_of(const claim& claim) {
  auto* const hold = claim.holder();
  return hold && hold->count() > 0 ? hold : nullptr;
}

struct sent_count {
  unsigned leases;
  milliseconds ttl;
};

void on_answer(const engine_parts& parts, claim& claim, const sent_count& sent, const outcome& outcome) {
  auto& count = claim.counted;
  // A lease that was given while this count was under way has not been confirmed by it, so the claim is asked again.
  const auto question = std::exchange(count.asked_again, false) ? in_question::claim : in_question::count;
  count.under_way = false;
  const auto reply = claim.keys->of.set_hold_count.read(outcome);
  const bool counted = !reply.failed && reply.value;
  // The count is noted even when the last unlock waits for its turn: the claim may be passed on, with this count.
  count.leases = counted ? sent.leases : 0;
  auto* const hold = keeper_of(claim);
  if (!hold || parts.closed()) return;
  // The answer to the downgrade decides. If it has not run, the end of this change sends the count.
  if (hold->downgrading()) return;
  if (reply.failed && reply.failed->code == errc::corrupt_lock) return hold->lose(errc::corrupt_lock);
  // An answer after the end of the validity comes too late, whatever it says.
  if (!reply.failed && (!reply.value || !hold->exclusive())) return hold->lose(errc::lost);
  if (counted) hold->confirmed_by_count(outcome.sent, sent.ttl, outcome.yes);
  // A refusal would be repeated without end, so the count waits for the next change. A claim in question does not wait:
  // its lease was given without an answer.
  if (!counted && question == in_question::count) return;
  try {
    set_hold_count(parts, claim, question);
  } catch (const std::bad_alloc&) {
    // Nobody waits for this count, so nobody is notified of the missing memory. The next change sends it.
    count.leases = 0;
  }
}

}  // namespace

void set_hold_count(const engine_parts& parts, claim& claim, in_question question) {
  auto* const hold = keeper_of(claim);
  if (!hold || parts.closed() || !claim.keys->of.set_hold_count.make) return;
  auto& count = claim.counted;
  // One count at a time: two could arrive in the wrong order, and the older one would stay.
  if (count.under_way) {
    count.asked_again |= question == in_question::claim;
    return;
  }
  // Most locks are never nested. Their count is 1 from the acquire, and costs no command.
  if (question == in_question::count && count.leases == hold->count()) return;
  const sent_count sent{static_cast<unsigned>(hold->count()), hold->ttl_to_keep()};
  auto answered = [&parts, keep = claim_ptr(&claim), sent](const outcome& outcome) {
    on_answer(parts, *keep, sent, outcome);
  };
  send_once(
      parts.env, claim.keys->of.set_hold_count.make(*claim.keys, hold->ttl_to_send(sent.ttl), claim.field, sent.leases),
      {.timeout = command_budget(parts.env.settings, hold->ttl()), .rank = urgency::obligation}, std::move(answered));
  // Set afterwards: without memory nothing was sent, and no answer would clear the flag.
  count.under_way = count.ever_sent = true;
}

}  // namespace holdfast::detail
