// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "sync/claim/terms.hpp"
#include "sync/command/environment.hpp"
#include "sync/command/handlers.hpp"

namespace holdfast::detail {

inline constexpr const char* unanswered_before = "Redis did not answer what came before it in time";
/// The failure of an unlock that waits no longer for its turn.
inline failure unanswered() noexcept { return redis::failure_with(errc::unconfirmed, unanswered_before); }

/// Decides how long unlocks wait for a server that does not answer.
///
/// Decision: unlocks wait once for an outage. A request with five nested locks would wait five command timeouts. So the
/// first unlock of an outage waits its whole budget, and its server is remembered as silent. Until that server answers
/// anything, no other unlock waits beyond the end of that first budget. Any answer ends the silence, and so does a new
/// connection. It does not matter whose command was silent.
class unlock_time_budget {
 public:
  explicit unlock_time_budget(const environment& env) noexcept : env_(env) {}

  /// The instant until which an unlock of `key` waits, if it is called now and may take `budget`. If that is `now`, it
  /// does not wait.
  time_point answer_by(std::string_view key, time_point now, nanoseconds budget);
  /// The budget of an unlock of `key` that was called at `since` is over, and it has no answer.
  void ran_out(std::string_view key, time_point since) noexcept;
  /// Keys have moved to another node. Unlocks that began before do not show which node was silent.
  void keys_moved() noexcept { moved_ = env_.now(); }
  /// Returns a handler. `done` gets its call, or unanswered() at `deadline` if that comes first. While the server
  /// answers other commands, the deadline is put off by a command timeout.
  done_handler limit(const shared_keys& keys, time_point deadline, done_handler done);

 private:
  using silences = std::map<node_id, time_point>;
  class waiting_caller;

  silences::iterator silence_of(std::string_view key);

  const environment& env_;
  silences silent_since_;  // per server that has answered nothing since
  time_point moved_{};     // the last move of keys
};

}  // namespace holdfast::detail
