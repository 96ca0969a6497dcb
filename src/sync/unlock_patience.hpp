// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <map>
#include <new>
#include <string_view>

#include "sync/surroundings.hpp"

namespace holdfast::detail {

/// How long unlocks wait for a server that does not answer: the first of an outage for its whole time, and then nobody
/// for longer than that. A request with nested locks has as many unlocks; they wait once for each server.
class unlock_patience {
 public:
  explicit unlock_patience(const surroundings& around) noexcept : around_(around) {}

  /// Until when an unlock of `key` waits that is called now, and may take `budget`. Not in the future: it waits for
  /// nothing.
  time_point answer_by(std::string_view key, nanoseconds budget) {
    const auto now = around_.now();
    const auto silent = silence_of(key);
    return silent == silent_since_.end() ? now + budget : std::clamp(silent->second + budget, now, now + budget);
  }
  /// The time of an unlock of `key` that was called at `since` is over, and there was no answer to it.
  void ran_out(std::string_view key, time_point since) noexcept try {
    if (around_.servers.answered_since(key, since)) return;  // it was late, and the server is not silent
    if (silence_of(key) == silent_since_.end()) silent_since_.emplace(around_.servers.node_of(key), since);
  } catch (const std::bad_alloc&) {
    // Not remembered: the next one waits for its whole time as well.
  }

 private:
  using silences = std::map<node_id, time_point>;

  silences::iterator silence_of(std::string_view key) {
    const auto found = silent_since_.find(around_.servers.node_of(key));
    if (found == silent_since_.end() || !around_.servers.answered_since(key, found->second)) return found;
    silent_since_.erase(found);
    return silent_since_.end();
  }

  const surroundings& around_;
  silences silent_since_;  // of servers that have answered nothing since
};

}  // namespace holdfast::detail
