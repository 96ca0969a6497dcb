// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <string>

#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promise about a primary that was replaced: no client talks to it once each client can know its successor. The
/// servers agree on the successor from the instant of its promotion. A write that it lacks then is forgotten, and so is
/// each later write of the old primary: the owner must learn of that loss.
class succession_judge {
 public:
  explicit succession_judge(evidence& known) : known_(known) {}

  /// A replica has taken the place of its primary. Nobody gives back a field that it has kept too long.
  void promoted(server& from, server& to);
  /// A server that was replaced, and does not know it, has answered a command about this field.
  void answered_by_replaced(std::size_t machine, const std::string& key, const std::string& field, bool has_it);

 private:
  evidence& known_;
};

}  // namespace holdfast::sim
