// SPDX-License-Identifier: BSL-1.0
#include "sync/reentry.hpp"

#include <boost/asio/error.hpp>

namespace holdfast::detail {

using patience = lock_request::patience;

engine::reentry::reentry(engine& host, std::shared_ptr<hold> of, lock_request request, lock_handler done)
    : host_(host), of_(std::move(of)), request_(std::move(request)), done_(std::move(done)), since_(host.around_.now()),
      alarm_(host.around_.alarms), pause_(host.around_.alarms), backoff_(milliseconds(20), std::chrono::seconds(1)) {}

void engine::reentry::begin() {
  host_.reentries_.insert(this);
  if (request_.wait == patience::until_deadline)
    alarm_.start(request_.deadline, [id = weak_from_this()] {
      if (const auto late = id.lock(); late && late->done_)
        late->finish({errc::unreachable, "Redis did not answer the re-entry in time", nullptr});
    });
  host_.change(of_, [self = shared_from_this()] { self->run(); });
}

void engine::reentry::cancel() {
  if (queued_) return queued_->cancel();
  if (done_) finish({boost::asio::error::operation_aborted, {}, nullptr});
}

void engine::reentry::close() {
  const auto keep = shared_from_this();
  pause_.stop();
  finish({errc::closed, {}, nullptr});
}

void engine::reentry::run() {
  if (!done_) return end_change();
  if (!of_->ended() && !of_->exclusive()) host_.lose(*of_, errc::lost);
  if (of_->state() == lease_state::released) {
    alarm_.stop();
    host_.reentries_.erase(this);
    end_change();
    queued_ = host_.lock(of_->name, std::move(request_), std::exchange(done_, {}));
    return;
  }
  if (of_->ended()) {
    finish({of_->lost_reason, "the hold that it would re-enter is lost", nullptr});
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
  const auto sent = around.now();
  const auto ttl = request_.asked.ttl;
  auto call = scripts::reenter(of_->keys, ttl, of_->field, static_cast<unsigned>(of_->leases.size()) + 1);
  around.run(std::move(call), sent + command_budget(around.settings, ttl),
             [self = shared_from_this(), sent](outcome o) { self->answered(sent, std::move(o)); });
}

void engine::reentry::answered(time_point sent, outcome o) {
  if (o.error) {
    const bool retry = o.error == errc::unreachable || o.error == errc::unconfirmed;
    return failed({retry ? make_error_code(errc::unreachable) : o.error, retry, o.detail}, o.error == errc::unconfirmed);
  }
  const auto said = read_reenter(o.reply);
  if (said.error) return failed(*said.error, false);
  if (!said.value || !of_->exclusive()) {
    host_.lose(*of_, errc::lost);
    if (done_) finish({of_->lost_reason, "the hold that it would re-enter is lost", nullptr});
    return end_change();
  }
  if (!done_) return undo();
  granted(sent);
}

void engine::reentry::granted(time_point sent) {
  finish({{}, {}, host_.add_lease(*of_, request_.asked, sent)});
  end_change();
}

void engine::reentry::failed(const server_error& why, bool may_have_run) {
  if (!done_) return may_have_run ? undo() : end_change();
  if (why.retry && request_.wait != patience::once) {
    // It waits for its hold, not longer: run() finds out when that is lost.
    pause_.start(host_.around_.now() + backoff_.next(host_.around_.random), [self = shared_from_this()] { self->run(); });
    return;
  }
  finish({why.code, why.text, nullptr});
  may_have_run ? undo() : end_change();
}

// The server may count one more than there are leases.
void engine::reentry::undo() {
  if (of_->ended() || of_->leases.empty()) return end_change();
  host_.lower_count(of_, false, [self = shared_from_this()](error_code) { self->end_change(); });
}

void engine::reentry::finish(lock_answer a) {
  alarm_.stop();
  host_.reentries_.erase(this);
  const auto what = a.record ? event::kind::acquired : event::kind::acquire_failed;
  host_.around_.report(
      {.what = what, .name = of_->name, .reason = a.error, .waited = host_.around_.now() - since_, .detail = a.detail});
  std::exchange(done_, {})(std::move(a));
}

void engine::reentry::end_change() { host_.changed(of_); }

}  // namespace holdfast::detail
