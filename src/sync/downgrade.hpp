// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <optional>

#include "sync/hold/lease_record.hpp"
#include "sync/registry.hpp"

namespace holdfast::detail {

/// Makes a read hold of a write hold, by one command. The caller gets a lease of the read hold, and the lease of the
/// write hold ends.
///
/// It promises:
/// - the command is sent at most twice, and both copies share one command timeout, which ends with the validity;
/// - if it has not run and never will, the write hold is as it was;
/// - if that is unknown, the write hold is lost, and the fields of both sides are released behind the command;
/// - the same if the caller stops waiting, or the write hold ends, while the command is on its way.
///
/// Decision: a downgrade is a change of the write hold. So it waits for the re-entries before it, and a last unlock
/// waits for it. While it runs the claim is in doubt, so a nested call gets no lease of the write hold at once. The
/// call waits for the change, finds that the hold has ended, and is nested in the read hold.
///
/// Decision: an unconfirmed downgrade ends the write hold. Others may read by then, so nobody may believe that it
/// writes. A read hold would be as uncertain.
class downgrade final : public script_command, public cancellable, private hold_reentry {
 public:
  /// `write`: of a live client, and not released. `reader`: the same lock on the reader's side.
  downgrade(const engine_parts& parts, registry& names, std::shared_ptr<lease_record> write, shared_keys reader,
            lock_handler done);
  void begin();
  void cancel() override;

 private:
  // Called for the command.
  void on_answer(const outcome& outcome) override;
  std::optional<nanoseconds> time_left_for_copies() const override { return end_ - parts_.env.now(); }
  // Called by the hold.
  void hold_ended() override;
  void forget_caller() override;

  hold& of() const noexcept { return *write_->of; }
  std::shared_ptr<downgrade> self() { return std::static_pointer_cast<downgrade>(shared_from_this()); }
  std::optional<failure> refusal();
  void run();
  void send();
  void failed(const failure& why);
  void on_replicas(const outcome& outcome, const std::optional<failure>& too_few);
  void become(const outcome& outcome);
  void leave(const failure& why);
  lock_handler take_caller();

  const engine_parts& parts_;
  registry& names_;
  const std::shared_ptr<lease_record> write_;
  const shared_keys reader_;
  lock_handler done_;  // empty once the caller was answered
  time_point end_{};   // of the command's timeout
  bool running_ = false;
  bool repeated_ = false;
  bool may_have_run_ = false;
};

}  // namespace holdfast::detail
