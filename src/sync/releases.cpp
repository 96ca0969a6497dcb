// SPDX-License-Identifier: BSL-1.0
#include "sync/releases.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "sync/script_command.hpp"

namespace holdfast::detail {

class releases::task final : public script_command {
 public:
  task(releases& to, release_host& name, shared_keys k, owner_field f, milliseconds t)
      : of(name), keys(std::move(k)), field(f), ttl(t), backoff(milliseconds(20), std::chrono::seconds(1)),
        pause(to.around_.alarms), to_(to) {}

  bool listed() const noexcept { return membership.hook.is_linked(); }

  release_host& of;
  const shared_keys keys;
  const owner_field field;
  const milliseconds ttl;
  time_point valid{};  // a repeated release that is answered "not yours" before this instant has released
  time_point began{};
  time_point answer_by{};  // until when `done` waits, if the command is written at once
  time_point give_up{};
  bool may_have_run = false;             // a copy was written and not answered
  std::optional<std::uint64_t> went_to;  // the server that it was written to; 0: unknown, or several
  bool repeated = false;
  std::string last_failure;  // why
  handler done;              // empty: nobody waits (any more)
  function<void()> tried;    // empty: nobody asks (any more)
  retry_backoff backoff;
  timer pause;  // before the next copy; or, with one late, until it is given up
  member membership;

 private:
  void on_answer(const outcome& o) override {
    if (listed()) to_.answered(*this, o);
  }
  void late(const outcome& o) override {
    if (listed()) to_.on_late(*this, o.detail);
  }

  releases& to_;
};

releases::~releases() {
  while (!under_way_.empty()) take_out(*under_way_.front().kept);
}

void releases::release(release_host& of, shared_keys keys, owner_field field, milliseconds ttl, time_point now,
                       time_point valid, time_point answer_by, handler done) {
  auto t = std::make_shared<task>(*this, of, std::move(keys), field, ttl);
  t->valid = valid;
  t->answer_by = answer_by;
  t->done = std::move(done);
  start(std::move(t), now);
}

void releases::release_in_background(release_host& of, shared_keys keys, owner_field field, milliseconds ttl,
                                     function<void()> tried) {
  auto t = std::make_shared<task>(*this, of, std::move(keys), field, ttl);
  t->tried = std::move(tried);
  start(std::move(t), around_.now());
}

void releases::start(std::shared_ptr<task> which, time_point now) {
  auto& t = *which;
  t.began = now;
  // After one TTL without renewal the key is gone; a command delayed on its way may still have set it that much later.
  t.give_up = t.began + around_.settings.command_timeout + t.ttl;
  under_way_.push_back(t.membership);
  t.membership.kept = std::move(which);
  t.of.release_begins();
  send(t, now);
}

// Patient: a connection that goes on answering is not late, and only its end is a reason to send once more.
void releases::send(task& t, time_point now) {
  if (t.done && now >= t.answer_by)
    std::exchange(t.done, {})(errc::unconfirmed,
                              t.repeated ? t.last_failure : "Redis did not answer what came before it in time");
  const auto timeout = t.done ? t.answer_by - now : command_budget(around_.settings, t.ttl);
  t.script_command::send(around_.servers, t.keys->of.release.make(*t.keys, {t.ttl}, t.field, 0),
                         {.timeout = timeout, .rank = urgency::obligation, .patient = true, .tell_late = true});
}

void releases::on_late(task& t, const std::string& detail) {
  if (t.done) std::exchange(t.done, {})(errc::unconfirmed, detail);
  t.pause.start(std::max(t.give_up, around_.now()), [this, &t, detail] {
    t.withdraw();
    end(t, errc::unconfirmed, detail);
  });
}

void releases::answered(task& t, const outcome& o) {
  t.pause.stop();
  if (t.tried && (!o.error || o.error == errc::unconfirmed)) std::exchange(t.tried, {})();
  if (o.error) return again(t, o);
  const auto said = t.keys->of.release.read(o);
  if (said.failed) {
    if (said.failed->mends_itself()) return again(t, {said.failed->code, {}, said.failed->detail});
    return end(t, said.failed->code, said.failed->detail);
  }
  if (said.value == release_answer::freed || !t.done) return end(t, {}, {});
  if (!t.may_have_run) return end(t, errc::lost, not_ours);
  // The first copy may have released it; once the validity is over it may as well have expired. Another server knows
  // nothing of that.
  const bool same = t.went_to.value_or(0) != 0 && *t.went_to == o.server;
  if (same && around_.now() < t.valid) return end(t, {}, {});
  end(t, errc::unconfirmed,
      same ? "the first answer was lost, and the validity ended before the second"
           : "the first answer was lost, and another server answered the second");
}

void releases::again(task& t, const outcome& o) {
  const auto& why = o.error;
  const bool mends =
      why == errc::unreachable || why == errc::unconfirmed || why == errc::server_refused || why == errc::overloaded;
  const auto now = around_.now();
  if (!mends || now >= t.give_up) return end(t, mends ? make_error_code(errc::unconfirmed) : why, o.detail);
  if (why == errc::unconfirmed) {
    t.may_have_run = true;
    if (t.went_to.value_or(o.server) != o.server) t.went_to = 0;
    if (!t.went_to) t.went_to = o.server;
    // It did not wait for its turn to be written out of its own time.
    if (!t.repeated) t.answer_by = std::max(t.answer_by, o.sent + (t.answer_by - t.began));
  }
  if (t.done && now >= t.answer_by) std::exchange(t.done, {})(errc::unconfirmed, o.detail);
  t.last_failure = o.detail;
  // Once at once: a connection that was cut is usually made anew in no time.
  const auto pause = std::exchange(t.repeated, true) ? t.backoff.next(around_.random) : nanoseconds::zero();
  t.pause.start(t.done ? std::min(now + pause, t.answer_by) : now + pause, [this, &t] { send(t, around_.now()); });
}

void releases::end(task& t, error_code error, const std::string& detail) {
  const auto keep = take_out(t);
  if (t.tried) std::exchange(t.tried, {})();
  if (t.done) {
    std::exchange(t.done, {})(error, detail);
    if (error == errc::unconfirmed) report(t, event::kind::release_given_up, error, detail);
  } else {
    report(t, error ? event::kind::release_given_up : event::kind::released_late, error, detail);
  }
  t.of.release_ends();
  if (under_way_.empty() && when_idle_) std::exchange(when_idle_, {})();
}

std::shared_ptr<releases::task> releases::take_out(task& t) {
  HOLDFAST_ASSERT(t.listed());
  under_way_.erase(under_way_.iterator_to(t.membership));
  t.pause.stop();
  return std::move(t.membership.kept);
}

void releases::report(const task& t, event::kind what, error_code reason, const std::string& detail) const {
  around_.report(hold_event{{.what = what, .name = t.keys->name, .reason = reason, .detail = detail}, t.field});
}

void releases::when_idle(function<void()> then) {
  if (under_way_.empty()) return then();
  when_idle_ = std::move(then);
}

void releases::abandon() {
  when_idle_ = {};
  while (!under_way_.empty()) {
    auto& t = *under_way_.front().kept;
    t.withdraw();
    t.tried = {};
    end(t, errc::unconfirmed, "the client was closed before Redis answered");
  }
}

}  // namespace holdfast::detail
