// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "sync/hold/hold.hpp"
#include "sync/line/acquisition.hpp"
#include "sync/line/waiting_line.hpp"

namespace holdfast::detail {

/// The place of an acquisition at a hold of its owner, and the command that asks for one more lease. Never queues
/// behind other owners' waiters, never brings back a hold that was lost. Its command is sent within a change of the
/// hold's count, and goes on when its caller has stopped waiting.
class reentry final : public script_command, private acquisition_place, private hold_reentry {
 public:
  /// `name`: of the hold, which does not leave it before this has heard of its end.
  reentry(environment& env, line_host& name, hold_ptr of, std::shared_ptr<acquisition> waiter);
  void begin();

 private:
  // Its caller.
  void leave(acquisition& waiter, lock_answer why) override;
  void time_out(acquisition& waiter) override;
  // An acquisition that waits here sends nothing and has no turn.
  void attempt_answered(acquisition&, const outcome&) override {}
  void settled(acquisition&, const attempt&) override {}
  // Its hold.
  void hold_ended() override;
  void forget_caller() override;
  // Its command.
  void on_answer(const outcome& outcome) override;
  std::optional<nanoseconds> time_left_for_copies() const override;
  void late(const outcome& outcome) override;

  void wait_for_queued_change();
  template <class Act>
  void or_without_memory(Act act);
  void run();
  void send();
  void wait_for_replicas(unsigned wanted, const outcome& outcome);
  void on_replicas(const std::optional<failure>& too_few, time_point sent);
  void entered(time_point sent, primary_set at);
  void failed(const failure& why);
  void nothing_to_enter();
  std::shared_ptr<acquisition> leave_hold();
  void finish(lock_answer answer);
  std::shared_ptr<reentry> self() { return std::static_pointer_cast<reentry>(shared_from_this()); }

  environment& env_;
  line_host& name_;
  const hold_ptr of_;
  std::shared_ptr<acquisition> waiter_;  // null once it was answered, or waits elsewhere
  timer pause_;
  failure last_failure_;
  unsigned want_ = 0;  // the count that was sent last
};

}  // namespace holdfast::detail
