// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/all_or_none_judge.hpp"

namespace holdfast::sim {

void all_or_none_judge::answered(const std::vector<std::pair<std::string, std::string>>& name_and_field,
                                 bool acquired) {
  for (const auto& [name, field] : name_and_field) {
    const bool stored = known_.stored.backed_until(name, field).has_value();
    if (acquired && !stored) known_.found.accuse("the node", "has granted several, and not " + name);
    if (acquired) acquired_.insert(field);
    if (!acquired && stored && !acquired_together(field))
      known_.found.accuse("the node", "has granted " + name + ", and not the others");
  }
}

void all_or_none_judge::granted(const sim_client& client, const std::vector<record_ptr>& leases, std::size_t asked) {
  if (leases.size() != asked) known_.accuse(client, "was granted a part of what it asked for together");
  std::set<std::string> fields;
  for (const auto& lease : leases) fields.insert(field_of(*lease->of));
  if (fields.size() != asked) known_.accuse(client, "has one field of several locks");
}

void all_or_none_judge::granted_any(const sim_client& client, const record_ptr& lease) {
  if (lease->of->count() != 1) known_.accuse(client, "has re-entered " + lease->of->keys()->name + ", one of several");
}

}  // namespace holdfast::sim
