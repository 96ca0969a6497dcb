// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/suspension_judge.hpp"

#include <algorithm>

namespace holdfast::sim {

void suspension_judge::look_at(hold_record& each) {
  const auto now = known_.now();
  if (each.hold->state() != lease_state::suspended) return each.suspended_since.reset();
  if (!each.suspended_since) each.suspended_since = now;
  if (now > std::max(*each.suspended_since, known_.clients.undisturbed_from(*each.client)) + bounds::journey)
    known_.accuse(*each.client, "still doubts its hold of " + each.name());
}

}  // namespace holdfast::sim
