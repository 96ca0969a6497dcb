// SPDX-License-Identifier: BSL-1.0
#include "sync/proclamation.hpp"

#include <algorithm>
#include <utility>

#include "base/cancelled.hpp"
#include "base/if_memory.hpp"
#include "sync/command/ask_twice.hpp"
#include "sync/command/send_once.hpp"
#include "sync/hold/engine_parts.hpp"

namespace holdfast::detail {

proclamation::proclamation(const engine_parts& parts, std::shared_ptr<lease_record> leadership,
                           std::shared_ptr<const election_keys> keys, done_handler done)
    : parts_(parts), leadership_(std::move(leadership)), keys_(std::move(keys)), done_(std::move(done)) {}

void proclamation::begin() {
  if (const auto why = refusal()) return take_caller()(why);
  end_ = parts_.env.now() + parts_.env.settings.command_timeout;
  of().add(std::shared_ptr<hold_reentry>(shared_from_this(), this));
  try {
    of().begin_change([self = shared_from_this()] { self->run(); });
  } catch (...) {
    if (done_) take_caller();
    throw;
  }
}

std::optional<failure> proclamation::refusal() const {
  if (leadership_->released.load(std::memory_order_acquire)) return failure{errc::not_held, {}};
  if (!of().live()) return of().end_cause();
  return std::nullopt;
}

void proclamation::run() {
  const auto why = done_ ? refusal() : std::nullopt;
  if (done_ && why) take_caller()(why);
  if (!done_) return of().end_change();
  const auto now = parts_.env.now();
  end_ = std::min(end_, of().valid_until());
  auto send = [self = shared_from_this()](time_point end, topology::handler then) { self->send(end, std::move(then)); };
  auto heard = [self = shared_from_this()](const outcome& outcome) { self->answered(outcome); };
  if (!if_memory([&] { ask_twice(parts_.env, end_ - now, std::move(send), std::move(heard)); })) {
    answer(redis::without_memory());
    of().end_change();
  }
}

// The closure keeps the operands, because a call refers to them until it is answered.
void proclamation::send(time_point end, topology::handler then) {
  auto heard = [self = shared_from_this(), then = std::move(then)](const outcome& outcome) {
    self->may_have_run_ |= outcome.error == errc::unconfirmed;
    then(outcome);
  };
  send_until(parts_.env, end, election_steps::proclaim(*keys_, of().field()), urgency::refusable, std::move(heard));
}

void proclamation::answered(const outcome& outcome) {
  const auto keep = shared_from_this();
  const auto reply = election_steps::read_proclaim(outcome);
  each_step step;
  step([&] {
    if (!reply.failed) parts_.env.note_withheld_message(outcome);
    // The end of the hold answers the caller.
    if (reply.failed && reply.failed->code == errc::corrupt_lock) return of().lose(errc::corrupt_lock);
    if (!reply.failed && !reply.value) return of().heed(renewal_answer::denied);
    answer(reply.failed && may_have_run_ ? failure{errc::unconfirmed, reply.failed->detail} : reply.failed);
  });
  step([&] { of().end_change(); });
  step.rethrow();
}

void proclamation::cancel() { answer(failure{cancelled(), {}}); }

void proclamation::hold_ended() { answer(of().client_closed() ? failure{errc::closed, {}} : of().end_cause()); }

void proclamation::answer(const std::optional<failure>& failed) {
  if (const auto done = take_caller()) done(failed);
}

// The hold keeps a caller that it knows until the caller is taken.
done_handler proclamation::take_caller() {
  if (is_linked()) of().take_out(*this);
  return std::exchange(done_, {});
}

}  // namespace holdfast::detail
