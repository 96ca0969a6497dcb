// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <optional>

#include "protocol/election/election_lock.hpp"
#include "sync/command/handlers.hpp"
#include "sync/hold/engine_parts.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/line/acquisition.hpp"
#include "sync/lookout/lookout.hpp"

namespace holdfast::detail {

/// The elections of one client, except for its candidates: those wait and hold as for any lock.
class elections final {
 public:
  using leader_handler = answer_handler<std::optional<leader_answer>>;

  explicit elections(const engine_parts& parts) noexcept : parts_(parts) {}
  elections(const elections&) = delete;
  elections& operator=(const elections&) = delete;

  /// Answers as soon as the leader is not `after`, and its term is not less.
  cancellable_ptr next(const shared_keys& keys, std::optional<leader_answer> after, leader_handler done);
  /// `keys`: with the new value. Null: of another client.
  cancellable_ptr proclaim(const std::shared_ptr<lease_record>& leadership, std::shared_ptr<const election_keys> keys,
                           done_handler done);

  /// Callers of next() get shutting_down, and from now on nobody may wait.
  void drain();
  /// The same. The engine refuses all calls.
  void close();
  bool idle() const noexcept { return observers_.empty(); }

 private:
  const engine_parts& parts_;
  lookouts observers_;
  bool draining_ = false;
};

/// An observer that knows `before` gets `now` as news. A lower term is an older state: another server has told it.
bool is_news(const std::optional<leader_answer>& before, const std::optional<leader_answer>& now) noexcept;

}  // namespace holdfast::detail
