// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/exclusion_judge.hpp"

#include <algorithm>

namespace holdfast::sim {

void exclusion_judge::granted(const hold_record& each, detail::milliseconds ttl) {
  if (each.hold->valid_until() - known_.now() < detail::min_validity(ttl))
    known_.accuse(*each.client, "was granted " + each.name() + " too late to use it");
}

void exclusion_judge::peer_holds(const std::string& name, const std::string& field, time_point until) {
  peer_released(field);
  peers_.push_back({name, field, known_.now(), until, known_.now()});
}

void exclusion_judge::peer_released(const std::string& field) {
  std::erase_if(peers_, [&](const auto& each) { return each.field == field; });
}

void exclusion_judge::look_at(hold_record& each) {
  const auto now = known_.now();
  const auto& hold = *each.hold;
  if (each.over) known_.accuse(*each.client, "claims " + each.name() + " again after it was over");
  if (!hold.wants_renewal(now)) each.renewed_since = now;
  const auto until = known_.stored.backed_until(hold.keys()->lock, each.fields);
  const bool covered = until && *until >= hold.valid_until();
  each.longest_ttl = std::max(each.longest_ttl, hold.ttl());
  claims_[each.name()].push_back(
      {each.client->name(), covered, each.asked, known_.stored.taken_by(each.name(), each.fields)});
  if (covered) return each.uncovered_since.reset();
  each.ever_uncovered = true;
  // The answer to a command from before the fault may arrive after it. Several nodes confirm one after the other: they
  // need never have backed the claim together.
  const auto backed = known_.stored.last_backed(hold.keys()->lock, each.fields, hold.valid_until());
  // A server that has been replaced confirms a claim that no other server knows.
  const bool by_one = !known_.stored.votes() && !known_.servers.fails_over();
  const auto first_confirmed = by_one ? time_point::max() : hold.valid_until() - each.longest_ttl;
  if (known_.excused.broken_or_forgotten_at(each.name()) < backed.value_or(first_confirmed))
    known_.accuse(*each.client,
                  "claims " + each.name() + (until ? " longer than the node keeps it" : ", which it does not hold"));
  // A command of several keys is refused while their slot moves, so no renewal can tell.
  const bool several_keys = known_.stored.shared_of(each.name()) != nullptr;
  if (!each.uncovered_since || (several_keys && known_.servers.moves(each.name()))) each.uncovered_since = now;
  const auto undisturbed = known_.clients.undisturbed_from(*each.client);
  const auto noticed = std::max({*each.uncovered_since, undisturbed, each.renewed_since}) +
                       nanoseconds(each.longest_ttl) / 3 + bounds::journey;
  if (now > noticed)
    known_.accuse(*each.client, "has not noticed in time that " + each.name() +
                                    (until ? " ends before its claim" : " was taken away"));
}

void exclusion_judge::look_at_peers() {
  for (auto& each : peers_) look_at(each);
  std::erase_if(peers_, [&](const auto& each) { return each.until <= known_.now(); });
}

void exclusion_judge::look_at(peer_claim& each) {
  if (each.until <= known_.now()) return;
  const auto until = known_.stored.backed_until(each.name, each.field);
  const bool covered = until && *until >= each.until;
  claims_[each.name].push_back({"a peer", covered, each.asked, known_.stored.taken_by(each.name, {each.field})});
  if (covered)
    each.covered_at = known_.now();
  else if (known_.excused.broken_or_forgotten_at(each.name) < each.covered_at)
    known_.found.accuse("a peer", "was robbed of " + each.name);
}

void exclusion_judge::compare_claims() {
  for (const auto& [name, claims] : claims_) {
    std::size_t claimed = 0, backed = 0;
    for (const auto& each : claims) {
      claimed += each.taken;
      if (each.backed) backed += each.taken;
    }
    const auto capacity = known_.stored.capacity_of(name);
    if (claimed <= capacity) continue;
    const auto first = std::min_element(claims.begin(), claims.end(),
                                        [](const auto& one, const auto& other) { return one.asked < other.asked; });
    if (backed > capacity || known_.excused.broken_at(name) < first->asked)
      known_.found.accuse(claims.front().holder + " and " + claims.back().holder,
                          known_.stored.shared_of(name)
                              ? "hold " + name + " together, and one of them writes"
                              : "hold " + std::to_string(claimed) + " of " + std::to_string(capacity) + ": " + name);
    known_.met.hit("overlap explained by a fault outside the guarantee");
  }
}

}  // namespace holdfast::sim
