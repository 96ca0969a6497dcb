// SPDX-License-Identifier: BSL-1.0
#include "sync/line/acquisition.hpp"

#include "base/assert.hpp"
#include "base/cancelled.hpp"
#include "sync/hold/hold.hpp"

namespace holdfast::detail {

acquisition::acquisition(environment& env, shared_keys lock, const lock_request& wanted, lock_handler&& done)
    : keys(std::move(lock)), request(wanted), backoff(milliseconds(20), std::chrono::seconds(1)), env_(env),
      since_(request.whole ? request.whole->since() : env.now()), done_(std::move(done)), alarm_(env.alarms) {}

// A try_lock() promises one command timeout for the whole call. Each place must therefore count from the call on.
time_point acquisition::answer_by() const noexcept {
  HOLDFAST_ASSERT(asks_once());
  return since_ + command_budget(env_.settings, request.asked.ttl);
}

void acquisition::wait_in(acquisition_place& where) {
  HOLDFAST_ASSERT(open());
  const bool first = !std::exchange(place_, &where);
  if (first && !request.whole && request.deadline != time_point::max()) wake_at(request.deadline);
  // A call that moved may wait for Redis from now on, although it did not before.
  if (env_.notices) env_.notices->waits_for_redis(noticed, keys, since_);
  backoff.reset();
}

// The place may drop the last reference while it answers, so each call of the place is the last act here.
void acquisition::cancel() {
  if (place_) place_->leave(*this, {failure{cancelled(), {}}});
}

void acquisition::wake_at(time_point when) {
  alarm_.start(when, [this] { time_out(); });
}

void acquisition::time_out() { place_->time_out(*this); }

void acquisition::forget_caller() {
  leave_place();
  done_ = {};
}

// An acquisition that was answered meanwhile has no place, and its field is being released already.
void acquisition::on_answer(const outcome& outcome) {
  if (place_) place_->attempt_answered(*this, outcome);
}

void acquisition::tell(const attempt& attempt) {
  if (place_) place_->settled(*this, attempt);
}

// A vote with another field belongs to an earlier attempt, and that field is being released.
void acquisition::on_late_vote(std::size_t index, const late_vote& late) {
  if (!got || got->field != late.field) return;
  if (auto* const hold = got->holder()) hold->hear_of(index, late, request.asked.ttl);
}

void acquisition::leave_place() {
  place_ = nullptr;
  // A running alarm would keep an idle io_context busy.
  alarm_.stop();
  noticed.end();
  if (std::exchange(seat.counted, false)) env_.count(measurement_kind::wait_ended, *keys);
}

void acquisition::report(const lock_answer& answer, hold_event&& event) const {
  event.content.ttl = request.asked.ttl;
  event.content.owner = request.owner;
  // A grant's event has the time of the grant. It may be older than now, and the two must fit.
  if (answer.value) {
    event.content.waited = event.at - since_;
  } else {
    event.content.waited = env_.now() - since_;
    if (answer.failed) {
      event.content.reason = answer.failed->code;
      event.content.detail = answer.failed->detail;
    }
  }
  env_.report(std::move(event));
}

}  // namespace holdfast::detail
