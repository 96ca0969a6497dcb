// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <optional>

#include "sync/surroundings.hpp"

namespace holdfast::detail {

/// How long unlocks wait for a server that does not answer: the first of an outage for its whole time, and then nobody
/// for longer than that. A request with nested locks has as many unlocks; they wait once.
class unlock_patience {
 public:
  explicit unlock_patience(const surroundings& around) noexcept : around_(around) {}

  /// Until when one waits that is called now, and may take `budget`. Not in the future: it waits for nothing.
  time_point answer_by(nanoseconds budget) const {
    const auto now = around_.now();
    if (!silent_since_ || around_.servers.answered_since(*silent_since_)) return now + budget;
    return std::clamp(*silent_since_ + budget, now, now + budget);
  }
  /// The time of one that was called at `since` is over, and there was no answer to it.
  void ran_out(time_point since) {
    if (around_.servers.answered_since(since)) return;  // it was late, and the server is not silent
    if (!silent_since_ || around_.servers.answered_since(*silent_since_)) silent_since_ = since;
  }

 private:
  const surroundings& around_;
  std::optional<time_point> silent_since_;  // if nothing was answered since
};

}  // namespace holdfast::detail
