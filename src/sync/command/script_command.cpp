// SPDX-License-Identifier: BSL-1.0
#include "sync/command/script_command.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "protocol/replies.hpp"
#include "sync/command/surroundings.hpp"
#include "sync/vote/round.hpp"

namespace holdfast::detail {

void script_command::send(topology& to, const call& what, const delivery& how, bool by_text) {
  HOLDFAST_ASSERT(!unanswered_);
  to_ = &to;
  call_ = what;
  how_ = how;
  by_text_ = by_text;
  unwanted_ = false;
  execute();
}

void script_command::send(const surroundings& around, const call& what, const delivery& how) {
  if (around.servers.primaries() == 1) return send(around.servers, what, how);
  HOLDFAST_ASSERT(!unanswered_);
  const auto votes = std::make_shared<round>(around, what, shared_from_this());
  votes_ = votes;
  unanswered_ = true;
  try {
    votes->begin(how.timeout);
  } catch (...) {
    unanswered_ = false;  // no copy was sent
    throw;
  }
}

void script_command::answered_by_all(const outcome& o) {
  votes_.reset();
  unanswered_ = false;
  on_answer(o);
}

std::optional<redis::failure> script_command::silence(time_point asked) const {
  if (!unanswered_) return std::nullopt;
  if (const auto votes = votes_.lock()) return votes->silence();
  return to_->silence_since(call_.key(), written_ == time_point() ? asked : written_);
}

void script_command::execute() {
  written_ = {};
  asked_ = to_->execute(call_.key(), {shared_from_this(), how_});
  unanswered_ = true;  // not where there was no memory to send it
}

primary_set script_command::withdraw_all() {
  if (!unanswered_) return everywhere;
  HOLDFAST_ASSERT(to_ || !votes_.expired());
  const auto keep = shared_from_this();
  if (const auto votes = votes_.lock()) {
    const auto left = votes->withdraw();
    unanswered_ = left.under_way;
    return left.may_have_run;
  }
  unwanted_ = true;
  if (!to_->withdraw(asked_)) return everywhere;
  unanswered_ = false;
  return nowhere;
}

// An abandoned script is not sent again: its release may be on its way already, in front of the text.
void script_command::answered(const outcome& o) {
  if (!unanswered_) return;  // it was refused, and withdrawn before that was told
  if (!by_text_ && !unwanted_ && may_repeat() && !o.error && is_unknown_script(o.reply)) {
    by_text_ = true;
    // A patient command goes on when its time is over: it is written, and told at once that it is late.
    const auto least = how_.patient ? nanoseconds(1) : nanoseconds::min();
    if (const auto left = time_left_for_copies()) how_.timeout = std::max(*left, least);
    if (if_memory([this] { execute(); })) return;
    unanswered_ = false;
    return on_answer({errc::unreachable, {}, "no memory"});
  }
  unanswered_ = false;
  on_answer(o);
}

}  // namespace holdfast::detail
