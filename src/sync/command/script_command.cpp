// SPDX-License-Identifier: BSL-1.0
#include "sync/command/script_command.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "protocol/replies.hpp"
#include "sync/command/environment.hpp"
#include "sync/command/script_sender.hpp"

namespace holdfast::detail {

void script_command::send(topology& to, const call& asked, const delivery& delivery, bool by_text) {
  HOLDFAST_ASSERT(!unanswered_);
  to_ = &to;
  call_ = asked;
  delivery_ = delivery;
  by_text_ = by_text;
  unwanted_ = false;
  execute();
}

void script_command::send(const environment& env, const call& asked, const delivery& delivery) {
  // The sender knows whether one server or a majority answers. No command asks for that itself.
  env.sender->send(env, *this, asked, delivery);
}

void script_command::send(const std::shared_ptr<script_copies>& copies, nanoseconds timeout) {
  HOLDFAST_ASSERT(!unanswered_);
  copies_ = copies;
  unanswered_ = true;
  try {
    copies->begin(timeout);
  } catch (...) {
    unanswered_ = false;  // no copy was sent
    throw;
  }
}

void script_command::answered_by_all(const outcome& outcome) {
  // on_answer() may send the next command with this object, so its state is reset first.
  copies_.reset();
  unanswered_ = false;
  on_answer(outcome);
}

std::optional<redis::failure> script_command::silence(time_point asked) const {
  if (!unanswered_) return std::nullopt;
  // A command that still waits to be written has asked nothing yet. Then the caller's own beginning counts.
  if (const auto copies = copies_.lock()) return copies->silence();
  return to_->silence_since(call_.key(), written_ == time_point() ? asked : written_);
}

void script_command::execute() {
  // silence() must not count from an earlier copy.
  written_ = {};
  ticket_ = to_->execute(call_.key(), {shared_from_this(), delivery_});
  unanswered_ = true;  // after execute(), which throws without memory
}

primary_set script_command::withdraw_all() {
  // An answered command may have run, and it is not remembered where.
  if (!unanswered_) return everywhere;
  HOLDFAST_ASSERT(to_ || !copies_.expired());
  if (const auto copies = copies_.lock()) {
    const auto left = copies->withdraw();
    unanswered_ = left.under_way;
    return left.may_have_run;
  }
  // Set even if the command was written already: a NOSCRIPT that is on its way must not bring it back.
  unwanted_ = true;
  if (!to_->withdraw(ticket_)) return everywhere;
  unanswered_ = false;
  return nowhere;
}

// An abandoned script is not sent again. Its release may be on its way already, in front of the text, and the text
// would take the lock after it was given back.
void script_command::answered(const outcome& outcome) {
  // A refused command may have been withdrawn before its refusal arrives here.
  if (!unanswered_) return;
  if (!by_text_ && !unwanted_ && may_repeat() && !outcome.error && is_unknown_script(outcome.reply)) {
    by_text_ = true;
    // A command that waits for its reply is sent even when its time is over. The link then reports at once that it is
    // late.
    const auto least = delivery_.waits_for_reply ? nanoseconds(1) : nanoseconds::min();
    if (const auto left = time_left_for_copies()) delivery_.timeout = std::max(*left, least);
    // A command is always answered, if necessary without the second copy.
    if (if_memory([this] { execute(); })) return;
    unanswered_ = false;
    return on_answer({errc::unreachable, {}, "no memory"});
  }
  unanswered_ = false;
  on_answer(outcome);
}

}  // namespace holdfast::detail
