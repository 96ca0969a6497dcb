// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/push_judge.hpp"

namespace holdfast::sim {

void push_judge::pushed(const sim_client& client, const std::string& key) {
  known_.met.hit("pushed: a change");
  auto& record = known_.clients.of(client);
  // A client in trouble may be late. Its next renewal or poll finds the change.
  if (known_.clients.undisturbed_from(client) < known_.now()) record.pushed[key] = known_.now();
}

// Several primaries push by themselves, and their holder waits for a majority.
void push_judge::look_at(hold_record& each) {
  const auto& client = *each.client;
  const auto& told = known_.clients.of(client).pushed;
  const auto found = told.find(each.hold->keys()->lock);
  if (found == told.end() || known_.stored.votes() || !each.hold->keys()->of.pushed.holds) return;
  const auto pushed = found->second;
  const bool disturbed = known_.clients.undisturbed_from(client) > pushed || known_.servers.moves(each.name());
  if (disturbed || !each.uncovered_since || *each.uncovered_since > pushed) return;
  if (known_.now() > pushed + bounds::told)
    known_.accuse(client, "was pushed that " + each.name() + " has changed, and believes to hold it");
  known_.met.hit("pushed: a loss");
}

}  // namespace holdfast::sim
