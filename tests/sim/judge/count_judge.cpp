// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/count_judge.hpp"

#include <algorithm>
#include <string>

namespace holdfast::sim {

void count_judge::look_at(hold_record& each) {
  if (known_.stored.votes()) return;  // some of several nodes know of a change later than its caller
  const auto& hold = *each.hold;
  if (!hold.keys()->of.set_hold_count.make) return;  // each permit and each read hold counts once
  const auto leases = hold.count();
  each.note_leases();
  // Without fencing a late command of a dead connection may still change the count.
  const auto& field = known_.fields.at(0, each.fields.front());
  const bool fenced = !field.unfenced && !field.replaced;
  if (hold.changing() || hold.on->counted.under_way || each.ever_uncovered || leases == 0 || !fenced) return;
  const auto count = count_of(*known_.stored.find(0, hold.keys()->lock), each.fields.front());
  const bool confirmed = hold.on->counted.leases == leases;
  const auto clear_since = known_.clients.of(*each.client).links[0].clear_since;
  const bool undisturbed = clear_since < each.granted;
  // A hold that was passed on may keep the count of the hold before it until a count can be sent.
  const bool possible = count > 0 && (count <= each.most_leases || hold.passes > 0);
  if (confirmed ? count != leases : undisturbed || !possible)
    known_.accuse(*each.client, "has " + std::to_string(leases) + " leases of " + each.name() + ", the node counts " +
                                    std::to_string(count));
}

}  // namespace holdfast::sim
