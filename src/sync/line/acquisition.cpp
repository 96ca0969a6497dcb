// SPDX-License-Identifier: BSL-1.0
#include "sync/line/acquisition.hpp"

#include "base/assert.hpp"
#include "base/cancelled.hpp"
#include "sync/hold/hold.hpp"

namespace holdfast::detail {

lock_answer without_memory() { return {errc::unreachable, "no memory", nullptr}; }

acquisition::acquisition(environment& around, shared_keys k, const lock_request& r, lock_handler&& done)
    : keys(std::move(k)), request(r), backoff(milliseconds(20), std::chrono::seconds(1)), around_(around),
      since_(request.whole ? request.whole->since() : around.now()), done_(std::move(done)), alarm_(around.alarms) {}

time_point acquisition::answer_by() const noexcept {
  HOLDFAST_ASSERT(asks_once());
  return since_ + command_budget(around_.settings, request.asked.ttl);
}

void acquisition::wait_in(acquisition_place& where) {
  HOLDFAST_ASSERT(open());
  const bool first = !std::exchange(place_, &where);
  if (first && !request.whole && request.deadline != time_point::max()) wake_at(request.deadline);
  if (around_.notices) around_.notices->waits_for_redis(noticed, keys, since_);
  backoff.reset();
}

void acquisition::cancel() {
  const auto keep = self();
  if (place_) place_->leave(*this, {cancelled(), {}, nullptr});
}

void acquisition::wake_at(time_point when) {
  alarm_.start(when, [this] { time_out(); });
}

void acquisition::time_out() {
  const auto keep = self();
  place_->time_out(*this);
}

void acquisition::forget_caller() {
  leave_place();
  done_ = {};
}

// One that was answered meanwhile waits nowhere, and what it had sent is being given back.
void acquisition::on_answer(const outcome& o) {
  if (place_) place_->attempt_answered(*this, o);
}

void acquisition::tell(const attempt& what) {
  const auto keep = self();
  if (place_) place_->told(*this, what);
}

// Not the word on an attempt before the one that was granted: that one's field is given back.
void acquisition::on_late_vote(std::size_t n, const late_vote& what) {
  if (!got || got->field != what.field) return;
  if (auto* const h = got->holder()) h->hear_of(n, what, request.asked.ttl);
}

void acquisition::leave_place() {
  place_ = nullptr;
  alarm_.stop();
  noticed.end();
  if (std::exchange(seat.counted, false)) around_.count(measurement_kind::wait_ended, *keys);
}

void acquisition::report(const lock_answer& a, hold_event&& e) const {
  e.what.ttl = request.asked.ttl;
  if (a.record) {
    e.what.waited = e.at - since_;
  } else {
    e.what.reason = a.error;
    e.what.waited = around_.now() - since_;
    e.what.detail = a.detail;
    e.what.owner = request.who;
  }
  around_.report(std::move(e));
}

}  // namespace holdfast::detail
