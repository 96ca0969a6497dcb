// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sync/inquiry/permission_probe.hpp"

namespace holdfast::detail {

/// Runs a permission_probe on each primary: first on the known primaries, then on primaries that the first answers
/// revealed. Ends with the last probe, or at the first refusal.
class permission_survey final {
 public:
  /// `stem` begins each probed name, and includes the key prefix.
  permission_survey(environment& env, const kind& kind, std::string stem, owner_field field, done_handler done);
  permission_survey(const permission_survey&) = delete;
  permission_survey& operator=(const permission_survey&) = delete;
  ~permission_survey() { forget_caller(); }

  void begin();
  void end(const std::optional<failure>& failed);
  bool over() const noexcept { return !done_; }
  /// The engine ends. The caller is not answered.
  void forget_caller();

 private:
  static constexpr int most_rounds = 2;

  void probe_each();
  void probe_ended(const std::string& name, const std::optional<failure>& failed);

  environment& env_;
  const kind& kind_;
  const std::string stem_;
  const owner_field field_;
  done_handler done_;                                      // emptied when it is answered
  std::vector<std::shared_ptr<permission_probe>> probes_;  // they call back, and do not keep it alive
  std::set<node_id> probed_;
  time_point deadline_;
  std::size_t under_way_ = 0;
  int rounds_ = 0;
};

}  // namespace holdfast::detail
