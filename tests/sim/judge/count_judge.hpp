// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promise about re-entries: the node counts as many as there are leases. After a disturbance it may count fewer or
/// more, and never more than there ever were.
class count_judge {
 public:
  explicit count_judge(evidence& known) : known_(known) {}

  /// A hold that the node backs in this instant.
  void look_at(hold_record&);

 private:
  evidence& known_;
};

}  // namespace holdfast::sim
