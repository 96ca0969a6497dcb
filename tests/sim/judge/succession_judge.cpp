// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/succession_judge.hpp"

namespace holdfast::sim {

void succession_judge::promoted(server& from, server& to) {
  const auto &before = from.program().keys(), &after = to.program().keys();
  for (const auto& [key, e] : before.all()) {
    if (!before.find(key)) continue;
    const auto* kept = after.find(key);
    known_.stored.each_owner(from, key, e, [&](const std::string& name, const std::string& field, time_point end) {
      if (stored(kept, field) != stored(&e, field) || known_.stored.kept_until(to, name, field) < end) {
        known_.excused.add(name, false);
        known_.fields.at(0, field).replaced = true;  // perhaps a count alone
        known_.met.hit("failover: forgets what was acknowledged");
      } else {
        known_.met.hit("failover: keeps a hold");
      }
    });
  }
  for (const auto& [key, e] : after.all())
    known_.stored.each_owner(to, key, e, [&](const std::string& name, const std::string& field, time_point end) {
      const auto* had = before.find(key);
      const bool longer = had && end > known_.stored.kept_until(from, name, field);
      if (stored(had, field) != stored(&e, field) || longer) known_.fields.at(0, field).met_replica = true;
    });
}

void succession_judge::answered_by_replaced(std::size_t machine, const std::string& key, const std::string& field,
                                            bool has_it) {
  const auto* owner = known_.clients.owner_of(field);
  if (!owner) return;
  auto& record = known_.fields.at(0, field);
  record.met_replica = record.replaced = true;  // no other server knows its count
  if (has_it) known_.excused.add(known_.stored.name_of(key), false);
  known_.met.hit("failover: an old primary answers");
  if (known_.now() > known_.clients.undisturbed_from(*owner->client))
    known_.accuse(*owner->client,
                  "still believes " + known_.servers.machines()[machine].name() + ", which has been replaced");
}

}  // namespace holdfast::sim
