// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/suspension_judge.hpp"

#include <algorithm>

namespace holdfast::sim {

// The renewal of a reader needs several keys, and is sent again until its slot has moved.
void suspension_judge::look_at(hold_record& each) {
  const auto now = known_.now();
  const bool several_keys = known_.stored.shared_of(each.name()) != nullptr;
  if (each.hold->state() != lease_state::suspended || (several_keys && known_.servers.moves(each.name())))
    return each.suspended_since.reset();
  if (!each.suspended_since) each.suspended_since = now;
  const auto due = std::max(*each.suspended_since, known_.clients.undisturbed_from(*each.client)) + bounds::journey +
                   (several_keys ? bounds::longest_redirect_pause : nanoseconds());
  if (now > due) known_.accuse(*each.client, "still doubts its hold of " + each.name());
}

}  // namespace holdfast::sim
