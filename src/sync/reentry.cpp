// SPDX-License-Identifier: BSL-1.0
#include "sync/reentry.hpp"

#include "base/cancelled.hpp"

namespace holdfast::detail {

using patience = lock_request::patience;

engine::reentry::reentry(engine& host, std::shared_ptr<hold> of, lock_request request, lock_handler done,
                         time_point since)
    : host_(host), of_(std::move(of)), request_(std::move(request)), done_(std::move(done)), since_(since),
      alarm_(host.around_.alarms), pause_(host.around_.alarms), backoff_(milliseconds(20), std::chrono::seconds(1)),
      last_failure_{errc::unreachable, true, {}} {}

void engine::reentry::begin() {
  place_ = host_.reentries_.insert(host_.reentries_.end(), this);
  place_at_hold_ = of_->reentries.insert(of_->reentries.end(), this);
  if (request_.wait == patience::until_deadline)
    alarm_.start(request_.deadline, [id = weak_from_this()] {
      if (const auto late = id.lock()) late->time_out();
    });
  queue();
}

void engine::reentry::queue() {
  of_->changes.add([self = shared_from_this()] { self->run(); });
}

void engine::reentry::cancel() {
  if (queued_) return queued_->cancel();
  give_up({cancelled(), {}, nullptr});
}

void engine::reentry::time_out() {
  const auto& why = last_failure_;
  const bool silence = why.code == errc::unreachable;
  give_up({why.code, silence ? host_.around_.servers.trouble(of_->keys()->lock).detail : why.text, nullptr});
}

void engine::reentry::close() { give_up({errc::closed, {}, nullptr}); }

void engine::reentry::forget_caller() {
  const auto keep = shared_from_this();
  alarm_.stop();
  pause_.stop();
  done_ = {};
}

void engine::reentry::run() {
  if (!done_) return undo_or_end();
  if (!of_->ended() && !of_->exclusive()) host_.lose(*of_, errc::lost);
  if (of_->ended()) {
    if (done_) hold_ended();
    return end_change();
  }
  if (request_.kind->fenced && !of_->token) {
    finish({errc::already_held, "the hold that it would re-enter was taken without a fencing token", nullptr});
    return end_change();
  }
  if (of_->leases.size() >= most_reentries) {
    finish({errc::too_many_reentries, {}, nullptr});
    return end_change();
  }
  send();
}

void engine::reentry::send() {
  auto& around = host_.around_;
  const auto ttl = request_.asked.ttl;
  const bool once = request_.wait == patience::once;
  auto call = scripts::reenter(*of_->keys(), host_.ttl_to_send(*of_, ttl), of_->field(),
                               static_cast<unsigned>(of_->leases.size()) + 1);
  attempt_ = around.run(std::move(call),
                        {.timeout = command_budget(around.settings, ttl),
                         .rank = once ? urgency::refusable : urgency::patient,
                         .patient = !once,
                         .late = [self = shared_from_this()](const outcome& o) { self->on_late(o); }},
                        [self = shared_from_this()](outcome o) { self->answered(std::move(o)); });
}

// Without a connection it is sent anew now and then, and waits for no longer than its hold. Once written it waits for
// the answer.
void engine::reentry::on_late(const outcome& o) {
  if (withdraw(attempt_)) failed({errc::unreachable, true, o.detail}, false);
}

void engine::reentry::answered(outcome o) {
  if (o.error) {
    const bool silence = o.error == errc::unreachable || o.error == errc::unconfirmed;
    const bool retry = silence || o.error == errc::server_refused;
    return failed({silence ? make_error_code(errc::unreachable) : o.error, retry, o.detail},
                  o.error == errc::unconfirmed);
  }
  const auto said = read_reenter(o.reply);
  if (said.error && said.error->code == errc::corrupt_lock) {
    if (done_) finish({said.error->code, said.error->text, nullptr});
    host_.lose(*of_, errc::corrupt_lock);
    return end_change();
  }
  if (said.error) return failed(*said.error, false);
  if (!said.value || !of_->exclusive()) {
    host_.lose(*of_, errc::lost);
    if (done_) hold_ended();
    return end_change();
  }
  may_have_run_ = true;
  if (!done_) return undo_or_end();
  granted(o.sent);
}

void engine::reentry::granted(time_point sent) {
  finish({{}, {}, host_.add_lease(*of_, request_.asked, sent)});
  end_change();
}

void engine::reentry::failed(const server_error& why, bool may_have_run) {
  may_have_run_ |= may_have_run;
  last_failure_ = why;
  if (done_ && why.retry && request_.wait != patience::once) {
    // It waits for its hold, not longer. Meanwhile others may change it: an unlock must not wait.
    pause_.start(host_.around_.now() + backoff_.next(host_.around_.random),
                 [self = shared_from_this()] { self->queue(); });
    return end_change();
  }
  if (done_) finish({why.code, why.text, nullptr});
  undo_or_end();
}

// The server may count one more than there are leases.
void engine::reentry::undo_or_end() {
  if (!may_have_run_ || of_->ended() || of_->leases.empty()) return end_change();
  host_.lower_count(of_, [self = shared_from_this()](error_code) { self->end_change(); });
}

// A queued or written re-entry ends by itself; after a pause there may be something to undo.
void engine::reentry::give_up(lock_answer a) {
  if (!done_) return;
  const auto keep = shared_from_this();
  const bool paused = pause_.due().has_value();
  pause_.stop();
  finish(std::move(a));
  if (paused) of_->changes.add([self = shared_from_this()] { self->undo_or_end(); });
  if (withdraw(attempt_)) undo_or_end();
}

// Queued it finds out at its turn that it was answered; written, with its answer.
void engine::reentry::hold_lost() {
  const auto keep = shared_from_this();
  pause_.stop();
  hold_ended();
  if (withdraw(attempt_)) end_change();
}

// A loss concerns whoever still has a lease of the hold; with none it is nested in nothing, and goes to the line like
// anybody.
void engine::reentry::hold_ended() {
  const auto why = "the hold that it would re-enter is lost: " + of_->end_detail();
  if (!of_->leases.empty()) return finish({of_->end_reason(), why, nullptr});
  if (host_.closed()) return finish({errc::closed, {}, nullptr});
  if (host_.drains_without(request_.who)) return finish({errc::closed, drained_without, nullptr});
  leave();
  queued_ = host_.lock(of_->keys(), std::move(request_), std::exchange(done_, {}));
}

void engine::reentry::leave() {
  alarm_.stop();
  host_.reentries_.erase(place_);
  of_->reentries.erase(place_at_hold_);
}

void engine::reentry::finish(lock_answer a) {
  leave();
  const auto done = std::exchange(done_, {});
  auto e = event_of(a.record ? event::kind::reentered : end_of_call(a.error), *of_, host_.around_.now());
  e.reason = a.error;
  e.waited = host_.around_.now() - since_;
  e.detail = a.detail;
  e.ttl = request_.asked.ttl;
  host_.around_.report(e);
  done(std::move(a));
}

void engine::reentry::end_change() { host_.changed(of_); }

}  // namespace holdfast::detail
