// SPDX-License-Identifier: BSL-1.0
#include "sync/script_command.hpp"

#include <utility>

#include "base/assert.hpp"
#include "protocol/replies.hpp"

namespace holdfast::detail {

void script_command::send(topology& to, const call& what, const delivery& how) {
  HOLDFAST_ASSERT(!unanswered_);
  to_ = &to;
  call_ = what;
  how_ = how;
  by_text_ = unwanted_ = false;
  execute();
}

void script_command::execute() {
  asked_ = to_->execute(call_.key(), {shared_from_this(), how_});
  unanswered_ = true;  // not where there was no memory to send it
}

bool script_command::withdraw() {
  if (!unanswered_) return false;
  const auto keep = shared_from_this();
  unwanted_ = true;
  if (!to_->withdraw(asked_)) return false;
  unanswered_ = false;
  return true;
}

// An abandoned script is not sent again: its release may be on its way already, in front of the text.
void script_command::answered(const outcome& o) {
  if (!unanswered_) return;  // it was refused, and withdrawn before that was told
  if (!by_text_ && !unwanted_ && !o.error && is_unknown_script(o.reply)) {
    by_text_ = true;
    return execute();
  }
  unanswered_ = false;
  on_answer(o);
}

}  // namespace holdfast::detail
