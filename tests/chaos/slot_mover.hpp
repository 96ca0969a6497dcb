// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <optional>

#include "chaos/history.hpp"
#include "chaos/workload.hpp"
#include "support/real_cluster.hpp"

namespace holdfast::chaos {

/// Moves slots that have keys to other primaries, one after another, key by key.
class slot_mover {
 public:
  slot_mover(test::real_cluster& servers, history& log, dice numbers) : servers_(servers), log_(log), dice_(numbers) {}

  /// What an operator's tool does next. False: nothing was there to be moved.
  bool step();
  /// Brings to its end what has begun.
  void finish();

 private:
  struct move {
    unsigned slot;
    std::size_t from, to;
    bool empty = false;  // all its keys are where it goes
  };

  std::optional<move> next();

  test::real_cluster& servers_;
  history& log_;
  dice dice_;
  std::optional<move> under_way_;
};

}  // namespace holdfast::chaos
