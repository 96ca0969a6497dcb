// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <utility>

#include "sync/engine.hpp"

namespace holdfast::detail {

/// One more lease of a hold by its owner: never queues behind other waiters, never brings back a hold that was lost.
class engine::reentry final : public cancellable, public std::enable_shared_from_this<reentry> {
 public:
  reentry(engine& host, std::shared_ptr<hold> of, lock_request request, lock_handler done);

  void begin();
  void cancel() override;
  void close();  // the client was closed

 private:
  void run();
  void send();
  void answered(time_point sent, outcome o);
  void granted(time_point sent);
  void failed(const server_error& why, bool may_have_run);
  void undo();
  void finish(lock_answer a);
  void end_change();

  engine& host_;
  const std::shared_ptr<hold> of_;
  lock_request request_;
  lock_handler done_;  // emptied when it is answered
  time_point since_;
  timer alarm_;        // the caller's deadline
  timer pause_;
  retry_backoff backoff_;
  cancellable_ptr queued_;  // the hold was freed meanwhile: it went to the line like anybody else
};

}  // namespace holdfast::detail
