// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/function.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/environment.hpp"

namespace holdfast::detail {

inline constexpr const char* unanswered_before = "Redis did not answer what came before it in time";

/// How long unlocks wait for a server that does not answer: the first of an outage for its whole time, and then nobody
/// for longer than that. A request with nested locks has as many unlocks; they wait once for each server.
class unlock_time_budget {
 public:
  using handler = function<void(error_code, const std::string& detail)>;

  explicit unlock_time_budget(const environment& env) noexcept : env_(env) {}

  /// Until when an unlock of `key` that is called now and may take `budget` waits for its answer. Where that is not in
  /// the future, it waits for nothing.
  time_point answer_by(std::string_view key, time_point now, nanoseconds budget);
  /// The time of an unlock of `key` that was called at `since` is over, and there was no answer to it.
  void ran_out(std::string_view key, time_point since) noexcept;
  /// Keys have another node than before: nobody knows which one was silent until now.
  void keys_moved() noexcept { moved_ = env_.now(); }
  /// Returns a handler that passes on to `done` what comes first: its own call, or `late` at `deadline`. While the
  /// server answers others, the deadline is put off by a command timeout.
  handler limit(const shared_keys& keys, time_point deadline, error_code late, handler done);

 private:
  using silences = std::map<node_id, time_point>;
  class waiting_caller;

  silences::iterator silence_of(std::string_view key);

  const environment& env_;
  silences silent_since_;  // of servers that have answered nothing since
  time_point moved_{};     // when keys have moved last
};

}  // namespace holdfast::detail
