// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/client_judge.hpp"

#include <algorithm>

namespace holdfast::sim {

void client_judge::granted(const sim_client& client, const detail::hold& hold) {
  if (!field_of(hold).starts_with(client.uuid()))
    known_.found.accuse("the simulator", "does not know the uuid of " + client.name());
}

void client_judge::begin_close(const sim_client& client, nanoseconds grace) {
  if (known_.now() > known_.clients.undisturbed_from(client) && grace > bounds::journey)
    known_.clients.of(client).closing_in_peace = known_.now();
}

void client_judge::closed(const sim_client& client) {
  auto& record = known_.clients.of(client);
  if (const auto wrong = client.miscounted(); !wrong.empty()) known_.accuse(client, wrong);
  record.closed_in_peace = record.closing_in_peace &&
                           std::all_of(record.links.begin(), record.links.end(),
                                       [&](const auto& link) { return link.clear_since < *record.closing_in_peace; });
  if (record.closed_in_peace) known_.met.hit("close: nothing in the way");
}

void client_judge::connection_killed(const sim_client& victim) {
  known_.accuse(victim, "has lost a live connection to another's fence");
}

void client_judge::look_at_the_end() {
  for (const auto& each : known_.clients.all()) {
    if (!each.client->locks().idle()) known_.accuse(*each.client, "is not idle");
    if (each.client->process().has_timers()) known_.accuse(*each.client, "has left a timer");
  }
}

}  // namespace holdfast::sim
