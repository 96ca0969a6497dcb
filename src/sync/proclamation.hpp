// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <optional>

#include "protocol/election/election_lock.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/line/acquisition.hpp"

namespace holdfast::detail {

/// Changes the value of a leader, by one command.
///
/// It promises:
/// - the command is sent at most twice, and both copies share one command timeout, which ends with the validity;
/// - the values of one leader are written in the order of their calls, and a last unlock waits for them;
/// - its caller gets unconfirmed if a copy has no answer, and the other one no success;
/// - a leader that Redis does not know is lost, and so is its caller;
/// - a caller that stops waiting, or whose hold ends, is answered at once. The command may still run.
///
/// Decision: a proclamation is a change of the hold, as a count is. A repeated copy must not undo a later value.
class proclamation final : public cancellable, private hold_reentry, public std::enable_shared_from_this<proclamation> {
 public:
  /// `leadership`: of a live client, and not released. `keys`: the same election, with the new value.
  proclamation(const engine_parts& parts, std::shared_ptr<lease_record> leadership,
               std::shared_ptr<const election_keys> keys, done_handler done);
  void begin();
  void cancel() override;

 private:
  // Called by the hold.
  void hold_ended() override;
  void forget_caller() override { take_caller(); }

  hold& of() const noexcept { return *leadership_->of; }
  std::optional<failure> refusal() const;
  void run();
  void send(time_point end, topology::handler then);
  void answered(const outcome& outcome);
  void answer(const std::optional<failure>& failed);
  done_handler take_caller();

  const engine_parts& parts_;
  const std::shared_ptr<lease_record> leadership_;
  const std::shared_ptr<const election_keys> keys_;
  done_handler done_;  // empty once the caller was answered
  time_point end_{};   // of the command's timeout
  bool may_have_run_ = false;
};

}  // namespace holdfast::detail
