// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <list>
#include <memory>
#include <utility>

#include "sync/engine.hpp"

namespace holdfast::detail {

/// One more lease of a hold by its owner: never queues behind other waiters, never brings back a hold that was lost.
class engine::reentry final : public cancellable, public hold_waiter, public std::enable_shared_from_this<reentry> {
 public:
  /// `since`: when its lock() was called.
  reentry(engine& host, std::shared_ptr<hold> of, lock_request request, lock_handler done, time_point since);

  void begin();
  void cancel() override;
  void hold_lost() override;
  void close();          // the client was closed
  void forget_caller();  // the engine goes without an answer

 private:
  void queue();
  void run();
  void send();
  void on_late(const outcome& o);
  void answered(outcome o);
  void granted(time_point sent);
  void failed(const server_error& why, bool may_have_run);
  void undo_or_end();
  void give_up(lock_answer a);
  void time_out();
  void hold_ended();
  void leave();
  void finish(lock_answer a);
  void end_change();

  engine& host_;
  const std::shared_ptr<hold> of_;
  lock_request request_;
  lock_handler done_;  // emptied when it is answered
  const time_point since_;
  std::list<reentry*>::iterator place_;
  std::list<hold_waiter*>::iterator place_at_hold_;
  std::weak_ptr<script_run> attempt_;
  timer alarm_;  // the caller's deadline
  timer pause_;
  retry_backoff backoff_;
  server_error last_failure_;
  bool may_have_run_ = false;  // an attempt was written and not answered
  cancellable_ptr queued_;     // the hold was freed meanwhile: it went to the line like anybody else
};

}  // namespace holdfast::detail
