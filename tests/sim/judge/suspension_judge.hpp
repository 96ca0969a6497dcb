// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promise that a suspended hold is confirmed, within a journey, once its client is undisturbed. A reader's is not
/// confirmed while its slot moves.
class suspension_judge {
 public:
  explicit suspension_judge(evidence& known) : known_(known) {}

  void look_at(hold_record&);

 private:
  evidence& known_;
};

}  // namespace holdfast::sim
