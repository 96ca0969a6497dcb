// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promise that a client acts on a pushed change: a holder whose field is gone learns of it within 50 ms.
class push_judge {
 public:
  explicit push_judge(evidence& known) : known_(known) {}

  /// The change of this key has reached the client.
  void pushed(const sim_client& client, const std::string& key);
  void look_at(hold_record&);

 private:
  evidence& known_;
};

}  // namespace holdfast::sim
