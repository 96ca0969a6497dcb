// SPDX-License-Identifier: BSL-1.0
#include "sync/releases.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.hpp"

namespace holdfast::detail {

struct releases::task {
  task(surroundings& around, shared_keys k, owner_field f, milliseconds t)
      : keys(std::move(k)), field(f), ttl(t), backoff(milliseconds(20), std::chrono::seconds(1)), pause(around.alarms) {
  }

  const shared_keys keys;
  const owner_field field;
  const milliseconds ttl;
  time_point valid{};  // a repeated release that is answered "not yours" before this instant has released
  time_point began{};
  time_point answer_by{};  // until when `done` waits, if the command is written at once
  time_point give_up{};
  std::uint64_t number = 0;
  bool may_have_run = false;             // a copy was written and not answered
  std::optional<std::uint64_t> went_to;  // the server that it was written to; 0: unknown, or several
  bool repeated = false;
  std::string last_failure;  // why
  handler done;              // empty: nobody waits (any more)
  function<void()> tried;    // empty: nobody asks (any more)
  retry_backoff backoff;
  std::weak_ptr<script_run> sent;
  timer pause;  // before the next copy; or, with one late, until it is given up
};

bool releases::older::operator()(const std::shared_ptr<task>& a, const std::shared_ptr<task>& b) const noexcept {
  return a->number < b->number;
}

releases::~releases() {
  for (const auto& t : under_way_) t->pause.stop();  // its action keeps the task alive
}

void releases::release(shared_keys keys, owner_field field, milliseconds ttl, time_point valid, time_point answer_by,
                       handler done) {
  auto t = std::make_shared<task>(around_, std::move(keys), field, ttl);
  t->valid = valid;
  t->answer_by = answer_by;
  t->done = std::move(done);
  start(std::move(t));
}

void releases::release_in_background(shared_keys keys, owner_field field, milliseconds ttl, function<void()> tried) {
  auto t = std::make_shared<task>(around_, std::move(keys), field, ttl);
  t->tried = std::move(tried);
  start(std::move(t));
}

void releases::start(std::shared_ptr<task> t) {
  const auto now = around_.now();
  t->number = ++started_;
  t->began = now;
  // After one TTL without renewal the key is gone; a command delayed on its way may still have set it that much later.
  t->give_up = now + around_.settings.command_timeout + t->ttl;
  under_way_.insert(t);
  send(t);
}

// Patient: a connection that goes on answering is not late, and only its end is a reason to send once more.
void releases::send(const std::shared_ptr<task>& t) {
  const auto now = around_.now();
  if (t->done && now >= t->answer_by)
    std::exchange(t->done, {})(errc::unconfirmed,
                               t->repeated ? t->last_failure : "Redis did not answer what came before it in time");
  if (!under_way_.contains(t)) return;  // the caller abandoned everything from its handler
  const auto timeout = t->done ? t->answer_by - now : command_budget(around_.settings, t->ttl);
  auto late = [this, t](const outcome& o) { on_late(t, o.detail); };
  t->sent = around_.run(scripts::release(*t->keys, t->field, 0, {t->ttl}),
                        {.timeout = timeout, .rank = urgency::obligation, .patient = true, .late = std::move(late)},
                        [this, t](outcome o) { answered(t, std::move(o)); });
}

void releases::on_late(const std::shared_ptr<task>& t, const std::string& detail) {
  if (!under_way_.contains(t)) return;
  if (t->done) std::exchange(t->done, {})(errc::unconfirmed, detail);
  if (!under_way_.contains(t)) return;  // the caller abandoned everything from its handler
  t->pause.start(std::max(t->give_up, around_.now()), [this, t, detail] {
    withdraw(t->sent);
    end(t, errc::unconfirmed, detail);
  });
}

void releases::answered(const std::shared_ptr<task>& t, outcome o) {
  if (!under_way_.contains(t)) return;
  t->pause.stop();
  if (t->tried && (!o.error || o.error == errc::unconfirmed)) std::exchange(t->tried, {})();
  if (o.error) return again(t, o);
  const auto said = read_release(o.reply);
  if (said.error) {
    if (said.error->retry) return again(t, {said.error->code, {}, said.error->text});
    return end(t, said.error->code, said.error->text);
  }
  if (said.value == release_answer::freed || !t->done) return end(t, {}, {});
  if (!t->may_have_run) return end(t, errc::lost, not_ours);
  // The first copy may have released it; once the validity is over it may as well have expired. Another server knows
  // nothing of that.
  const bool same = t->went_to.value_or(0) != 0 && *t->went_to == o.server;
  if (same && around_.now() < t->valid) return end(t, {}, {});
  end(t, errc::unconfirmed,
      same ? "the first answer was lost, and the validity ended before the second"
           : "the first answer was lost, and another server answered the second");
}

void releases::again(const std::shared_ptr<task>& t, const outcome& o) {
  const auto& why = o.error;
  const bool mends =
      why == errc::unreachable || why == errc::unconfirmed || why == errc::server_refused || why == errc::overloaded;
  const auto now = around_.now();
  if (!mends || now >= t->give_up) return end(t, mends ? make_error_code(errc::unconfirmed) : why, o.detail);
  if (why == errc::unconfirmed) {
    t->may_have_run = true;
    if (t->went_to.value_or(o.server) != o.server) t->went_to = 0;
    if (!t->went_to) t->went_to = o.server;
    // It did not wait for its turn to be written out of its own time.
    if (!t->repeated) t->answer_by = std::max(t->answer_by, o.sent + (t->answer_by - t->began));
  }
  if (t->done && now >= t->answer_by) std::exchange(t->done, {})(errc::unconfirmed, o.detail);
  if (!under_way_.contains(t)) return;  // the caller abandoned everything from its handler
  t->last_failure = o.detail;
  // Once at once: a connection that was cut is usually made anew in no time.
  const auto pause = std::exchange(t->repeated, true) ? t->backoff.next(around_.random) : nanoseconds::zero();
  t->pause.start(t->done ? std::min(now + pause, t->answer_by) : now + pause, [this, t] { send(t); });
}

void releases::end(const std::shared_ptr<task>& which, error_code error, const std::string& detail) {
  HOLDFAST_ASSERT(under_way_.contains(which));
  const auto t = which;
  t->pause.stop();
  under_way_.erase(t);
  if (t->tried) std::exchange(t->tried, {})();
  if (t->done) {
    std::exchange(t->done, {})(error, detail);
    if (error == errc::unconfirmed) report(*t, event::kind::release_given_up, error, detail);
  } else {
    report(*t, error ? event::kind::release_given_up : event::kind::released_late, error, detail);
  }
  ended_(t->keys->name);
  if (under_way_.empty() && when_idle_) std::exchange(when_idle_, {})();
}

void releases::report(const task& t, event::kind what, error_code reason, const std::string& detail) const {
  around_.report({.what = what, .name = t.keys->name, .reason = reason, .detail = detail, .id = t.field});
}

void releases::when_idle(function<void()> then) {
  if (under_way_.empty()) return then();
  when_idle_ = std::move(then);
}

void releases::abandon() {
  for (const auto& t : std::exchange(under_way_, {})) {
    withdraw(t->sent);
    t->pause.stop();
    const std::string detail = "the client was closed before Redis answered";
    if (t->done) std::exchange(t->done, {})(errc::unconfirmed, detail);
    report(*t, event::kind::release_given_up, errc::unconfirmed, detail);
  }
  when_idle_ = {};
}

}  // namespace holdfast::detail
