// SPDX-License-Identifier: BSL-1.0
#include "sync/line/reentry.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/release/unlock_time_budget.hpp"

namespace holdfast::detail {

reentry::reentry(environment& env, line_place& line, hold_ptr of, std::shared_ptr<acquisition> waiter)
    : env_(env), line_(line), of_(std::move(of)), waiter_(std::move(waiter)), pause_(env.alarms) {}

void reentry::begin() {
  of_->add(std::shared_ptr<hold_reentry>(self(), this));
  try {
    waiter_->wait_in(*this);
    if (waiter_->asks_once()) waiter_->wake_at(env_.now() + waiter_->time_left());
    wait_for_queued_change();
  } catch (...) {
    if (waiter_) leave_hold();
    throw;
  }
}

template <class Act>
void reentry::or_without_memory(Act act) {
  if (!if_memory(act) && waiter_) finish({redis::without_memory()});
}

// A repeated command must not undo a later one, so commands that change the count of a hold run one after the other.
void reentry::wait_for_queued_change() {
  of_->begin_change([self = self()] { self->run(); });
}

void reentry::run() {
  if (!waiter_) return of_->end_change();
  if (!of_->live()) {
    // The hold ended while this change was queued.
    if (waiter_) nothing_to_enter();
    return of_->end_change();
  }
  // A plain lock of the same name has taken the hold. A caller of a fenced_mutex relies on a token, and none exists.
  if (waiter_->keys->of.fenced() && !of_->token()) {
    finish({failure{errc::already_held, "the hold that it would re-enter was taken without a fencing token"}});
    return of_->end_change();
  }
  if (of_->count() >= most_reentries) {
    finish({failure{errc::too_many_reentries, {}}});
    return of_->end_change();
  }
  try {
    send();
  } catch (const std::bad_alloc&) {
    finish({redis::without_memory()});
    of_->end_change();
  }
}

// A kind without counts is asked by a renewal: it confirms the field as well.
call reentry::question() {
  const auto& keys = *of_->keys();
  const auto ttl = of_->ttl_to_send(waiter_->request.asked.ttl);
  // The count is absolute, see kind.hpp.
  sent_count_ = static_cast<unsigned>(of_->count()) + 1;
  if (keys.of.set_hold_count.make) return keys.of.set_hold_count.make(keys, ttl, of_->field(), sent_count_);
  return keys.of.renew.make_one(keys, ttl, of_->field());
}

answer<renewal_answer> reentry::answer_in(const outcome& outcome) const {
  const auto& row = of_->keys()->of;
  if (row.set_hold_count.read) {
    auto counted = row.set_hold_count.read(outcome);
    return {std::move(counted.failed), counted.value ? renewal_answer::confirmed : renewal_answer::denied};
  }
  auto renewed = row.renew.read(outcome, 1);
  if (renewed.failed) return {std::move(renewed.failed)};
  return {{}, renewed.value[0]};
}

void reentry::send() {
  const auto ttl = waiter_->request.asked.ttl;
  const bool once = waiter_->asks_once();
  // The command's timeout is the rest of the caller's time.
  if (once) waiter_->stop_alarm();
  const auto timeout = once ? waiter_->time_left() : command_budget(env_.settings, ttl);
  script_command::send(env_, question(),
                       {.timeout = timeout,
                        .rank = once ? urgency::refusable : urgency::awaited,
                        .waits_for_reply = !once,
                        .tell_late = !once});
}

// A command that was not written yet is withdrawn and sent again after a pause, until the hold ends. A written command
// waits for its answer, because it may have changed the count.
void reentry::late(const outcome& outcome) {
  if (withdraw()) failed({errc::unreachable, outcome.detail});
}

std::optional<nanoseconds> reentry::time_left_for_copies() const {
  return waiter_->asks_once() ? std::optional(waiter_->time_left()) : std::nullopt;
}

void reentry::on_answer(const outcome& outcome) {
  const auto reply = answer_in(outcome);
  if (reply.failed && reply.failed->code == errc::corrupt_lock) {
    if (waiter_) finish({reply.failed});
    of_->lose(errc::corrupt_lock);
    return of_->end_change();
  }
  if (reply.failed) return failed(*reply.failed);
  // The validity may have ended while the answer was under way. The server's yes is no proof any more.
  if (of_->live()) of_->heed(reply.value);
  if (!of_->live()) {
    if (waiter_) nothing_to_enter();
    return of_->end_change();
  }
  of_->note_count(sent_count_);
  // The caller has left. The end of the last change corrects the count in Redis.
  if (!waiter_) return of_->end_change();
  const auto wanted = std::max<unsigned>(waiter_->request.asked.min_replicas, of_->min_replicas());
  if (wanted > 0) return wait_for_replicas(wanted, outcome);
  entered(outcome.sent, outcome.yes);
}

void reentry::wait_for_replicas(unsigned wanted, const outcome& outcome) {
  auto then = [self = self(), sent = outcome.sent](const std::optional<failure>& too_few) {
    self->on_replicas(too_few, sent);
  };
  const bool asked = if_memory(
      [&] { env_.when_replicated(of_->keys()->lock, wanted, outcome.server, of_->valid_until(), std::move(then)); });
  if (!asked) failed(redis::without_memory());
}

// The wait may outlive the hold and the caller, so both are checked anew.
void reentry::on_replicas(const std::optional<failure>& too_few, time_point sent) {
  if (!of_->live()) {
    if (waiter_) nothing_to_enter();
    return of_->end_change();
  }
  if (!waiter_) return of_->end_change();
  if (too_few) return failed(*too_few);
  entered(sent, only(0));
}

void reentry::entered(time_point sent, primary_set at) {
  std::shared_ptr<lease_record> lease;
  try {
    const auto& request = waiter_->request;
    lease = of_->grant(request.owner, request.asked, sent, env_.now(), at);
    lease->note_caller(request.bound, request.coroutine);
  } catch (const std::bad_alloc&) {
    finish({redis::without_memory()});
    return of_->end_change();
  }
  // The queued changes behind this one must go on, even if the answer finds no memory.
  each_step step;
  step([&] { finish({{}, std::move(lease)}); });
  of_->end_change();
  step.rethrow();
}

void reentry::failed(const failure& why) {
  last_failure_ = why;
  // Redis may have either count now. 0 stands for an unknown count, so the right one is sent again.
  if (why.may_have_run) of_->note_count(0);
  if (waiter_ && why.mends_itself() && !waiter_->asks_once()) {
    // The wait ends with the hold. Other changes may run during the pause, because an unlock must not wait for it.
    const auto again = env_.now() + waiter_->backoff.next(env_.random);
    or_without_memory([&] {
      pause_.start(again, [self = self()] { self->or_without_memory([&] { self->wait_for_queued_change(); }); });
    });
    return of_->end_change();
  }
  if (waiter_) finish({why});
  of_->end_change();
}

// A queued change finds later that no caller waits, and so does the answer of a written command. A pause has neither,
// but an earlier attempt may have changed the count. The end of the last change corrects it, so one more change is
// queued.
void reentry::leave(acquisition&, lock_answer why) {
  const auto keep = of_->take_out(*this);
  const bool paused = pause_.due().has_value();
  pause_.stop();
  finish(std::move(why));
  if (paused) of_->begin_change([of = of_] { of->end_change(); });
  const bool was_sent = under_way();
  const bool never_ran = withdraw();
  if (!was_sent || under_way()) return;
  if (!never_ran) of_->note_count(0);
  of_->end_change();
}

// An owner that holds the lock can meet no contention, so the result is the failure of the last attempt.
void reentry::time_out(acquisition& waiter) {
  if (waiter.asks_once()) return leave(waiter, {failure{errc::unreachable, unanswered_before}});
  auto why = last_failure_;
  if (why.code == errc::unreachable) why.detail = env_.servers.trouble(of_->keys()->lock).detail;
  leave(waiter, {std::move(why)});
}

void reentry::hold_ended() {
  pause_.stop();
  nothing_to_enter();
  // The hold waits for the end of each change. A withdrawn command gets no answer that would end this one.
  const bool was_sent = under_way();
  withdraw();
  if (was_sent && !under_way()) of_->end_change();
}

// An owner that still has a lease must learn of the loss. Without a lease the call is nested in nothing, and waits like
// a new call.
void reentry::nothing_to_enter() {
  if (of_->client_closed()) return finish({failure{errc::shutting_down, {}}});
  if (of_->count_of(waiter_->request.owner) == 0) return line_.queue(leave_hold());
  failure why{of_->end_reason(), {}};
  if_memory([&] { why.detail = "the hold that it would re-enter is lost: " + of_->end_detail(); });
  finish({std::move(why)});
}

void reentry::forget_caller() {
  pause_.stop();
  leave_hold()->forget_caller();
}

std::shared_ptr<acquisition> reentry::leave_hold() {
  // A caller that leaves, or whose hold has ended, was taken out before.
  if (is_linked()) of_->take_out(*this);
  return std::exchange(waiter_, nullptr);
}

void reentry::finish(lock_answer answer) {
  HOLDFAST_ASSERT(waiter_);
  const auto waiter = leave_hold();
  waiter->answer(std::move(answer), [this](const lock_answer& reply) {
    return event_of(reply.value ? event_kind::reentered : end_of_call(reply.failed), *of_, env_.now());
  });
}

}  // namespace holdfast::detail
