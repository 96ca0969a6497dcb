// SPDX-License-Identifier: BSL-1.0
#include "sync/downgrade.hpp"

#include <algorithm>
#include <utility>

#include "base/cancelled.hpp"
#include "base/if_memory.hpp"
#include "sync/hold/unlocking.hpp"

namespace holdfast::detail {

downgrade::downgrade(const engine_parts& parts, registry& names, std::shared_ptr<lease_record> write,
                     shared_keys reader, lock_handler done)
    : parts_(parts), names_(names), write_(std::move(write)), reader_(std::move(reader)), done_(std::move(done)) {}

void downgrade::begin() {
  if (const auto why = refusal()) return take_caller()({*why});
  end_ = parts_.env.now() + command_budget(parts_.env.settings, write_->asked.ttl);
  of().add(std::shared_ptr<hold_reentry>(self(), this));
  try {
    of().begin_change([self = self()] { self->run(); });
  } catch (...) {
    if (done_) take_caller();
    throw;
  }
}

std::optional<failure> downgrade::refusal() {
  if (write_->released.load(std::memory_order_acquire)) return failure{errc::not_held, {}};
  if (!of().live()) return of().end_cause();
  if (of().count() > 1) return failure{errc::already_held, "its owner has other leases of the write hold"};
  return std::nullopt;
}

void downgrade::run() {
  const auto why = done_ ? refusal() : std::nullopt;
  if (done_ && why) take_caller()({*why});
  if (!done_) return of().end_change();
  running_ = true;
  of().begin_downgrade();
  // The claim is not watched during the command, so the timeout tells the lease of the end of its validity.
  end_ = std::min(end_, of().valid_until());
  send();
}

void downgrade::send() {
  const auto& keys = *of().keys();
  const auto ttl = of().ttl_to_send(write_->asked.ttl).ttl;
  const bool sent = if_memory([&] {
    script_command::send(parts_.env, keys.of.queue.downgrade.make(keys, ttl, of().field(), names_.reserve(keys)),
                         {.timeout = end_ - parts_.env.now(), .rank = urgency::obligation});
  });
  if (!sent) failed(redis::without_memory());
}

void downgrade::on_answer(const outcome& outcome) {
  if (!done_) return of().end_change();
  const auto reply = of().keys()->of.queue.downgrade.read(outcome);
  if (reply.failed) {
    may_have_run_ |= reply.failed->may_have_run;
    if (outcome.error == errc::unconfirmed && parts_.env.now() < end_ && !std::exchange(repeated_, true)) return send();
    return failed(*reply.failed);
  }
  parts_.env.note_withheld_message(outcome);
  if (!reply.value) of().heed(renewal_answer::denied);
  // The end of the hold has answered the caller.
  if (!of().live()) return of().end_change();
  if (of().min_replicas() == 0) return become(outcome);
  auto then = [self = self(), outcome](const std::optional<failure>& too_few) { self->on_replicas(outcome, too_few); };
  const bool asked = if_memory([&] {
    parts_.env.when_replicated(reader_->lock, of().min_replicas(), outcome.server, of().valid_until(), std::move(then));
  });
  if (!asked) on_replicas(outcome, redis::without_memory());
}

void downgrade::on_replicas(const outcome& outcome, const std::optional<failure>& too_few) {
  if (!done_ || !of().live()) return of().end_change();
  if (!too_few) return become(outcome);
  leave(*too_few);
  of().end_change();
}

void downgrade::failed(const failure& why) {
  if (why.code == errc::corrupt_lock) {
    of().lose(errc::corrupt_lock);
  } else if (may_have_run_) {
    leave({errc::unconfirmed, why.detail});
  } else {
    of().no_downgrade();
    take_caller()({why});
  }
  of().end_change();
}

// A lease that was unlocked meanwhile has nothing to become. Its unlock waits for the end of this change.
void downgrade::become(const outcome& outcome) {
  if (!write_->try_release()) {
    leave({errc::not_held, {}});
    return of().end_change();
  }
  const auto done = take_caller();
  std::shared_ptr<lease_record> read;
  const bool made = if_memory([&] { read = names_.downgraded(*write_, reader_, outcome, parts_.env.now()); });
  each_step step;
  if (!made) {
    step([&] { leave({}); });
    step([&] { give_up(*write_, {}); });
  }
  step([&] { done(made ? lock_answer{{}, std::move(read)} : lock_answer{redis::without_memory()}); });
  step([&] { of().end_change(); });
  step.rethrow();
}

void downgrade::cancel() {
  if (!done_) return;
  const auto keep = self();
  const bool was_sent = under_way();
  leave({cancelled(), {}});
  // A withdrawn command gets no answer that would end the change.
  if (was_sent && !under_way()) of().end_change();
}

void downgrade::hold_ended() {
  const bool was_sent = under_way();
  leave(of().client_closed() ? failure{errc::closed, {}} : of().end_cause());
  if (was_sent && !under_way()) of().end_change();
}

// The release of the reader's field is written behind the command, and so is that of the writer's.
void downgrade::leave(const failure& why) {
  const auto done = take_caller();
  each_step step;
  if (running_) {
    if (withdraw() && !may_have_run_) {
      step([&] { of().no_downgrade(); });
    } else {
      const auto ttl =
          std::max<milliseconds>(write_->asked.ttl, of().on->may_live(parts_.env.now(), parts_.env.settings.drift));
      step([&] { of().lose_downgraded(); });
      if_memory([&] { names_.give_back(reader_, of().field(), ttl, {}); });
    }
  }
  if (done) step([&] { done({why}); });
  step.rethrow();
}

void downgrade::forget_caller() { take_caller(); }

// The hold keeps a caller that it knows until the caller is taken.
lock_handler downgrade::take_caller() {
  if (is_linked()) of().take_out(*this);
  return std::exchange(done_, {});
}

}  // namespace holdfast::detail
