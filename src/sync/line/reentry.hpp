// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "sync/hold/hold.hpp"
#include "sync/line/acquisition.hpp"

namespace holdfast::detail {

/// The place of an acquisition at a hold of its owner, and the command that asks for one more lease. It never waits
/// behind waiters of other owners, and never brings a lost hold back. Its command is a queued change of the hold's
/// count. The command goes on when the caller stops waiting.
///
/// Most nested calls wait for nothing and have no reentry (set_hold_count.hpp). A reentry is for the other calls: the
/// hold is in doubt or suspended, or the call asks for a longer TTL or more replicas.
class reentry final : public script_command, private acquisition_place, private hold_reentry {
 public:
  /// `line`: of the hold's name. The hold calls hold_ended() before it leaves its name.
  reentry(environment& env, line_place& line, hold_ptr of, std::shared_ptr<acquisition> waiter);
  void begin();

 private:
  // Called by the caller's acquisition.
  void leave(acquisition& waiter, lock_answer why) override;
  void time_out(acquisition& waiter) override;
  // An acquisition that waits here sends no attempt, and is no part that its line calls.
  void attempt_answered(acquisition&, const outcome&) override {}
  void settled(acquisition&, const attempt&) override {}
  // Called by the hold.
  void hold_ended() override;
  void forget_caller() override;
  // Called for the command.
  void on_answer(const outcome& outcome) override;
  std::optional<nanoseconds> time_left_for_copies() const override;
  void late(const outcome& outcome) override;

  void wait_for_queued_change();
  template <class Act>
  void or_without_memory(Act act);
  void run();
  call question();
  answer<renewal_answer> answer_in(const outcome& outcome) const;
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
  line_place& line_;
  const hold_ptr of_;
  std::shared_ptr<acquisition> waiter_;  // null after its answer, or if it waits elsewhere
  timer pause_;
  failure last_failure_;
  unsigned sent_count_ = 0;  // the last count that was sent, if the kind has counts
};

}  // namespace holdfast::detail
