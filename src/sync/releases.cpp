// SPDX-License-Identifier: BSL-1.0
#include "sync/releases.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::detail {

struct releases::task {
  task(surroundings& around, shared_keys k, owner_field f, milliseconds t)
      : keys(std::move(k)), field(f), ttl(t), backoff(milliseconds(20), std::chrono::seconds(1)), pause(around.alarms) {
  }

  const shared_keys keys;
  const owner_field field;
  const milliseconds ttl;
  time_point valid{};      // a repeated release that is answered "not yours" before this instant has released
  time_point answer_by{};  // until when `done` waits
  time_point give_up{};
  std::uint64_t number = 0;
  bool may_have_run = false;  // a copy was written and not answered
  bool repeated = false;
  handler done;  // empty: nobody waits (any more)
  retry_backoff backoff;
  timer pause;
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

void releases::release_in_background(shared_keys keys, owner_field field, milliseconds ttl) {
  start(std::make_shared<task>(around_, std::move(keys), field, ttl));
}

void releases::start(std::shared_ptr<task> t) {
  const auto now = around_.now();
  t->number = ++started_;
  // After one TTL without renewal the key is gone; a command delayed on its way may still have set it that much later.
  t->give_up = now + around_.settings.command_timeout + t->ttl;
  under_way_.insert(t);
  if (t->done && now >= t->answer_by)
    std::exchange(t->done, {})(errc::unconfirmed, "what came before it took its time");
  if (under_way_.contains(t)) send(t);
}

void releases::send(const std::shared_ptr<task>& t) {
  const auto deadline = t->done ? t->answer_by : around_.now() + command_budget(around_.settings, t->ttl);
  around_.run(scripts::release(*t->keys, t->field, 0, {t->ttl}), deadline,
              [this, t](outcome o) { answered(t, std::move(o)); });
}

void releases::answered(const std::shared_ptr<task>& t, outcome o) {
  if (!under_way_.contains(t)) return;
  if (o.error) return again(t, o.error, o.detail);
  const auto said = read_release(o.reply);
  if (said.error) {
    if (said.error->retry) return again(t, said.error->code, said.error->text);
    return end(t, said.error->code, said.error->text);
  }
  if (said.value == release_answer::freed || !t->done) return end(t, {}, {});
  if (!t->may_have_run) return end(t, errc::lost, "the key was gone or another's when it was released");
  // That copy may have released it; once the validity is over it may as well have expired.
  if (around_.now() < t->valid) return end(t, {}, {});
  end(t, errc::unconfirmed, "the first answer was lost, and the validity ended before the second");
}

void releases::again(const std::shared_ptr<task>& t, const error_code& why, const std::string& detail) {
  const bool mends =
      why == errc::unreachable || why == errc::unconfirmed || why == errc::server_refused || why == errc::overloaded;
  const auto now = around_.now();
  if (!mends || now >= t->give_up) return end(t, mends ? make_error_code(errc::unconfirmed) : why, detail);
  if (t->done && now >= t->answer_by) std::exchange(t->done, {})(errc::unconfirmed, detail);
  if (!under_way_.contains(t)) return;  // the caller abandoned everything from its handler
  t->may_have_run |= why == errc::unconfirmed;
  // Once at once: a connection that was cut is usually made anew in no time.
  const auto pause = std::exchange(t->repeated, true) ? t->backoff.next(around_.random) : nanoseconds::zero();
  t->pause.start(t->done ? std::min(now + pause, t->answer_by) : now + pause, [this, t] { send(t); });
}

void releases::end(const std::shared_ptr<task>& t, error_code error, const std::string& detail) {
  under_way_.erase(t);
  if (t->done) {
    std::exchange(t->done, {})(error, detail);
  } else {
    around_.report({.what = error ? event::kind::release_failed : event::kind::released_late,
                    .name = t->keys->name,
                    .reason = error,
                    .detail = detail});
  }
  ended_(t->keys->name);
  if (under_way_.empty() && when_idle_) std::exchange(when_idle_, {})();
}

void releases::when_idle(function<void()> then) {
  if (under_way_.empty()) return then();
  when_idle_ = std::move(then);
}

void releases::abandon() {
  for (const auto& t : std::exchange(under_way_, {})) {
    t->pause.stop();
    const std::string detail = "the client was closed before Redis answered";
    if (t->done)
      std::exchange(t->done, {})(errc::unconfirmed, detail);
    else
      around_.report(
          {.what = event::kind::release_failed, .name = t->keys->name, .reason = errc::unconfirmed, .detail = detail});
  }
  when_idle_ = {};
}

}  // namespace holdfast::detail
