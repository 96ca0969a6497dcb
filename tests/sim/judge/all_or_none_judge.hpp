// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promise of several locks: all are granted or none, by each script and to each caller. Each lock has its own
/// hold.
class all_or_none_judge {
 public:
  explicit all_or_none_judge(evidence& known) : known_(known) {}

  /// The node has answered a script that wants `field` of each name.
  void answered(const std::vector<std::pair<std::string, std::string>>& name_and_field, bool acquired);
  /// The leases of a call that has asked for so many.
  void granted(const sim_client& client, const std::vector<record_ptr>& leases, std::size_t asked);
  /// The lease of a call for any one of several.
  void granted_any(const sim_client& client, const record_ptr& lease);
  /// A script has acquired this field together with others.
  bool acquired_together(const std::string& field) const { return acquired_.contains(field); }

 private:
  evidence& known_;
  std::set<std::string> acquired_;  // fields
};

}  // namespace holdfast::sim
