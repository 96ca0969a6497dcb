// SPDX-License-Identifier: BSL-1.0
#include "sync/waiting_line.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "sync/lease_record.hpp"

namespace holdfast::detail {

namespace {

/// Each copy of an acquire may take the lock for a waiter who cannot hear of it. After so many the others have their
/// turn.
constexpr unsigned most_unanswered = 2;
constexpr nanoseconds least_penalty = milliseconds(20), longest_penalty = std::chrono::seconds(1);

}  // namespace

waiting_line::waiting_line(surroundings& around, owner_fields& fields, line_host& host, shared_keys keys)
    : around_(around), fields_(fields), host_(host), keys_(std::move(keys)), park_(around.alarms) {}

// The engine ends: whoever can cancel a waiter may keep it alive.
waiting_line::~waiting_line() {
  while (!waiters_.empty()) take_out(first())->forget_caller();
}

void waiting_line::join(std::shared_ptr<acquisition> who) {
  HOLDFAST_ASSERT(!waiters_.empty() || step_ == step::idle || step_ == step::barred);
  auto& w = *who;
  w.seat.ahead = static_cast<unsigned>(waiters_.size());
  w.seat.number = ++joined_;
  if (w.request.bound) bound_.emplace(std::pair(w.request.who, w.seat.number), &w);
  waiters_.push_back(w.seat);
  w.seat.kept = std::move(who);
  try {
    begin(w);
  } catch (const std::bad_alloc&) {
    take_back(w);
    throw;
  }
}

void waiting_line::begin(acquisition& w) {
  w.wait_in(*this);
  const bool once = w.asks_once();
  if (once && w.seat.ahead > 0) return finish(w, {});
  if (once && step_ == step::barred) w.wake_at(around_.now() + w.time_left() / 2);
  if (w.seat.ahead > 0) return;
  if (!w.request.found_taken || step_ == step::barred) return advance();
  known_held_ = around_.now();
  subscribe();
  park_while_held(nanoseconds::max(), around_.now(), next_poll());
}

// Its caller hears that there was no memory, and could cancel nothing.
void waiting_line::take_back(acquisition& w) {
  if (!w.seat.hook.is_linked()) return;
  const bool was_first = &w == &first();
  const auto keep = take_out(w);
  w.forget_caller();
  if (!was_first || step_ == step::barred) return;
  step_ = step::idle;
  subscription_.reset();
  advance();
}

void waiting_line::leave(acquisition& w, lock_answer why) { finish(w, std::move(why)); }

void waiting_line::wake() {
  if (step_ == step::trying) woken_ = true;
  if (step_ != step::parked) return;
  if (wake_ups_.next() <= around_.now()) {
    wake_ups_.spend(around_.now());
    advance();
  } else if (park_.due() > wake_ups_.next()) {
    park_.start(wake_ups_.next(), [this] { wake(); });
  }
}

std::shared_ptr<acquisition> waiting_line::extract(owner_id who) {
  if (waiters_.empty()) return nullptr;
  for (auto w = bound_.upper_bound({who, waiters_.front().number}); w != bound_.end() && w->first.first == who; ++w)
    if (!w->second->request.one_of_several) return take_out(*w->second);
  return nullptr;
}

void waiting_line::fail_all_of(owner_id who, error_code error, const char* detail) {
  std::vector<std::shared_ptr<acquisition>> leaving;
  for (auto w = bound_.upper_bound({who, 0}); w != bound_.end() && w->first.first == who; ++w)
    leaving.push_back(w->second->seat.kept);
  for (auto w = leaving.rbegin(); w != leaving.rend(); ++w) leave(**w, {error, detail, nullptr});
}

void waiting_line::on_subscribed() { wake(); }

void waiting_line::on_message(std::string_view) {
  // Most often the echo of our own release; if not, somebody has force-unlocked what we hold.
  if (host_.held_here()) return host_.doubt_hold_here();
  wake();
}

void waiting_line::on_subscribe_failed(error_code error, const std::string& detail) {
  subscription_.reset();
  if (step_ == step::parked) step_ = step::idle;  // the next does not wait for messages that will not come
  if (!waiters_.empty()) on_failed(first(), {static_cast<errc>(error.value()), detail});
}

// The first of the line, perhaps a new one, does what comes next.
void waiting_line::advance() {
  if (step_ == step::trying) return;
  if (untried_ > 0) {
    step_ = step::barred;
    return park_.stop();
  }
  if (waiters_.empty()) {
    step_ = step::idle;
    park_.stop();
    return host_.line_empty();
  }
  if (first().asks_once() || !host_.held_here()) return try_now();
  // Subscribed all the same: a force-unlock from elsewhere frees what we believe to hold.
  subscribe();
  park_while_held(nanoseconds::max(), around_.now(), nanoseconds::max());
}

void waiting_line::subscribe() {
  if (!subscription_) subscription_ = around_.servers.subscribe(channel_of(*keys_), *this);
}

void waiting_line::try_now() {
  HOLDFAST_ASSERT(!waiters_.empty() && step_ != step::trying);
  auto& w = first();
  if (parked_while_held()) known_held_ = around_.now();
  step_ = step::trying;
  woken_ = false;
  park_.stop();
  const auto& asked = w.request;
  const auto& steps = w.keys->of;
  const bool once = w.asks_once();
  w.seat.first_try = !once && !w.request.found_taken && w.seat.field.empty() && steps.first_acquire.make;
  if (w.seat.field.empty()) w.seat.field = fields_.next();
  if (once) w.stop_alarm();  // from here on the command's timeout counts
  const auto timeout = once ? w.time_left() : command_budget(around_.settings, asked.asked.ttl);
  const auto& step = w.seat.first_try ? steps.first_acquire : steps.acquire;
  w.send(around_.servers, step.make(*w.keys, asked.asked.ttl, w.seat.field),
         {.timeout = timeout, .rank = once ? urgency::refusable : urgency::patient, .patient = !once});
}

void waiting_line::answered(acquisition& w, const outcome& o) {
  HOLDFAST_ASSERT(step_ == step::trying && &w == &first());
  step_ = step::idle;
  w.seat.sent = o.sent;
  const auto said = (w.seat.first_try ? w.keys->of.first_acquire : w.keys->of.acquire).read(o);
  if (!o.error) penalty_ = {};
  // It may be held, by somebody who was let write: acquire looks.
  if (w.seat.first_try && !o.error && o.reply.is_error()) return try_now();
  if (said.failed) {
    if (o.error) last_failure_ = said.failed;  // no news: the connection has told
    if (said.failed->may_have_run && ++w.seat.unanswered >= most_unanswered && o.error) return stand_back(w);
    return on_failed(w, *said.failed);
  }
  const auto now = around_.now();
  known_held_ = now;
  last_failure_.reset();
  switch (said.value.what) {
    case acquire_answer::kind::acquired: return on_acquired(w, said.value.token, now);
    case acquire_answer::kind::busy: return on_busy(w, said.value.holder_ttl, now);
    case acquire_answer::kind::busy_without_ttl:
      return finish(w, {errc::corrupt_lock, "its key has no TTL, so it would never end", nullptr});
  }
}

void waiting_line::on_acquired(acquisition& w, std::optional<std::uint64_t> token, time_point now) {
  const auto ttl = w.request.asked.ttl;
  if (now >= valid_until(w.seat.sent, ttl, around_.settings.drift) - min_validity(ttl)) {
    abandon_field(w);
    return on_failed(w, {errc::unreachable, "the grant came too late to be of use"});
  }
  w.seat.unanswered = 0;
  wake_ups_.granted();
  polled_ = {};
  auto record = host_.granted(w, {w.seat.field, token, w.seat.sent, now});
  w.seat.field.clear();  // the hold's from now on
  finish(w, {{}, {}, std::move(record)});
}

// What it was granted, or may still be, is given back; the next attempt has a field of its own.
void waiting_line::abandon_field(acquisition& w) {
  HOLDFAST_ASSERT(!w.seat.field.empty());
  w.seat.unanswered = 0;
  host_.give_back(std::exchange(w.seat.field, {}), w.request.asked.ttl, [id = weak_from_this()] {
    if (const auto line = id.lock()) line->on_tried();
  });
  ++untried_;
}

void waiting_line::on_tried() {
  HOLDFAST_ASSERT(untried_ > 0);
  if (--untried_ > 0 || step_ != step::barred) return;
  if (penalty_ > nanoseconds::zero() && !waiters_.empty()) return park_for(penalty_, step::barred);
  step_ = step::idle;
  advance();
}

void waiting_line::stand_back(acquisition& w) {
  penalty_ = std::clamp(2 * penalty_, least_penalty, longest_penalty);
  step_ = step::barred;
  abandon_field(w);
}

void waiting_line::on_busy(acquisition& w, std::optional<milliseconds> holder_ttl, time_point now) {
  w.backoff.reset();
  if (!holder_ttl && subscription_) return try_now();  // no acknowledgement comes, after which it would
  if (holder_ttl) wake_ups_.found_busy(w.seat.sent, now, *holder_ttl);
  const bool may_reenter = w.request.bound && !w.request.one_of_several;
  if (may_reenter && host_.held_by(w.request.who)) return leave_to_reenter(w);
  if (w.asks_once()) return finish(w, {});
  const bool again = subscription_ && woken_;
  // What was published before the acknowledgement is missed: on_subscribed() tries again.
  subscribe();
  park_while_held(holder_ttl ? nanoseconds(*holder_ttl) : nanoseconds::max(), w.seat.sent, next_poll());
  if (again) wake();
}

// The line may be gone by then; its host has a hold.
void waiting_line::leave_to_reenter(acquisition& w) {
  auto& host = host_;
  const auto who = w.seat.kept;
  remove(w);
  host.reenter(who);
}

void waiting_line::on_failed(acquisition& w, const failure& why) {
  const auto before = std::exchange(last_failure_, why);
  const bool news = !before || before->code != why.code;
  if (!why.mends_itself() || w.asks_once()) return finish(w, {why.code, why.detail, nullptr});
  // The connection tells of its own outages; of a server that answers and will not write nobody else does.
  if (news && why.code == errc::server_refused)
    around_.report({.what = event::kind::outage, .name = keys_->name, .reason = why.code, .detail = why.detail});
  const auto pause = w.backoff.next(around_.random);
  const bool barred = w.seat.unanswered == 0 && penalty_ > nanoseconds::zero();
  park_for(std::max(pause, penalty_), barred ? step::barred : step::parked);
}

// A lock may become free without a message.
nanoseconds waiting_line::longest_park() {
  const nanoseconds cap = around_.settings.poll_cap;
  return cap - around_.random.up_to(cap / 10);
}

// In vain, if he who holds it tells of its release.
nanoseconds waiting_line::next_poll() {
  const auto& polls = keys_->of.polls;
  if (polls.longest == milliseconds::zero()) return nanoseconds::max();
  const auto pause = std::clamp<nanoseconds>(polled_, polls.first, polls.longest);
  return pause - around_.random.up_to(pause / 10);
}

// What was so when Redis was asked: a process that was stopped since has slept through a part of it.
void waiting_line::park_while_held(nanoseconds holder_ttl, time_point asked, nanoseconds poll) {
  const auto capped = longest_park();
  // Redis keeps a key through the millisecond in which it ends.
  const nanoseconds least = milliseconds(1) + around_.random.up_to(milliseconds(1));
  const auto pause = holder_ttl < capped ? holder_ttl + least : capped;
  park_for(std::min(std::max(pause - (around_.now() - asked), least), poll));
}

void waiting_line::park_for(nanoseconds pause, step how) {
  HOLDFAST_ASSERT(!waiters_.empty());
  step_ = how;
  park_.start(around_.now() + pause, [this] {
    if (parked_while_held() && !host_.held_here())
      polled_ = 2 * std::clamp<nanoseconds>(polled_, keys_->of.polls.first, keys_->of.polls.longest);
    if (step_ == step::barred) step_ = step::idle;
    advance();
  });
}

void waiting_line::time_out(acquisition& w) {
  if (w.asks_once()) return try_now();                                  // the other half of its time is for the answer
  const bool behind = &w != &first() && !last_failure_ && known_held_;  // of others who hear from Redis
  const bool held = parked_while_held() || host_.held_here();
  if (behind || held || (known_held_ && *known_held_ >= w.since())) return finish(w, {});
  if (last_failure_ && last_failure_->code != errc::unreachable)
    return finish(w, {last_failure_->code, last_failure_->detail, nullptr});
  // A connection that is there has answered others meanwhile, or had no time to: the lock was not had in time.
  if (around_.servers.answering(keys_->lock)) return finish(w, {});
  finish(w, {errc::unreachable, around_.servers.trouble(keys_->lock).detail, nullptr});
}

// Not after a failure, which says nothing of the lock.
bool waiting_line::parked_while_held() const { return step_ == step::parked && !last_failure_; }

std::shared_ptr<acquisition> waiting_line::take_out(acquisition& w) {
  waiters_.erase(waiters_.iterator_to(w.seat));
  if (w.request.bound) bound_.erase({w.request.who, w.seat.number});
  return std::move(w.seat.kept);
}

void waiting_line::remove(acquisition& w) {
  const bool was_first = &w == &first();
  const auto keep = take_out(w);
  bool sent = w.seat.unanswered > 0;
  if (was_first && step_ == step::trying) {
    step_ = step::idle;
    if (!w.withdraw()) sent = true;  // what was never written needs no compensation
  }
  if (sent && !w.seat.field.empty()) abandon_field(w);
  HOLDFAST_ASSERT(!sent || w.seat.field.empty());
  if (waiters_.empty()) subscription_.reset();
  // A parked line stays parked for its new first: what it waits for holds for the next as well. So does a barred one.
  if (was_first && (step_ == step::idle || waiters_.empty())) advance();
}

// The caller last: where there is no memory for its answer, the line still goes on. The line may be gone by then. And
// where the line finds none to go on, the caller is answered all the same: its lease is of a hold that stands.
void waiting_line::finish(acquisition& w, lock_answer a) {
  const auto keep = w.seat.kept;
  const auto event_for = [&w, &around = around_](const lock_answer& said) {
    auto e = said.record ? event_of(event::kind::acquired, *said.record->of, around.now())
                         : hold_event{{.what = end_of_call(said.error), .name = w.keys->name}};
    e.what.waiters = w.seat.ahead;
    return e;
  };
  try {
    remove(w);
  } catch (...) {
    w.answer(std::move(a), event_for);
    throw;
  }
  w.answer(std::move(a), event_for);
}

}  // namespace holdfast::detail
