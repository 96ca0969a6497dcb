// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <string>

#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promise that each call is answered once.
class answer_judge {
 public:
  explicit answer_judge(evidence& known) : known_(known) {}

  void answered(std::uint64_t call);
  void look_at_the_end();
  /// One line for each call that is open.
  std::string unanswered() const;

 private:
  evidence& known_;
};

}  // namespace holdfast::sim
