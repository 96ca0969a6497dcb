// SPDX-License-Identifier: BSL-1.0
#include "sync/waiting_line.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "base/cancelled.hpp"

namespace holdfast::detail {

using patience = lock_request::patience;

namespace {

/// Each copy of an acquire may take the lock for a waiter who cannot hear of it. After so many the others have their
/// turn.
constexpr unsigned most_unanswered = 2;
constexpr nanoseconds least_penalty = milliseconds(20), longest_penalty = std::chrono::seconds(1);

}  // namespace

waiter::waiter(surroundings& around, std::weak_ptr<waiting_line> l, lock_request r, lock_handler d)
    : line(std::move(l)), request(std::move(r)), done(std::move(d)), since(around.now()), alarm(around.alarms),
      backoff(milliseconds(20), std::chrono::seconds(1)) {}

void waiter::cancel() {
  if (moved_to) return moved_to->cancel();
  if (const auto l = line.lock()) l->leave(shared_from_this(), cancelled(), {});
}

waiting_line::waiting_line(surroundings& around, line_host& host, shared_keys keys)
    : around_(around), host_(host), keys_(std::move(keys)), park_(around.alarms) {}

// With its engine: a waiter may live on with who can cancel it, whom its handler may own.
waiting_line::~waiting_line() {
  for (const auto& w : waiters_) {
    w->alarm.stop();
    w->done = {};
  }
}

std::shared_ptr<waiter> waiting_line::join(lock_request request, lock_handler done) {
  HOLDFAST_ASSERT(!waiters_.empty() || step_ == step::idle || step_ == step::barred);
  const auto keep = shared_from_this();
  const auto w = std::make_shared<waiter>(around_, keep, std::move(request), std::move(done));
  w->ahead = waiters_.size();
  w->place = waiters_.insert(waiters_.end(), w);
  w->number = ++joined_;
  if (w->request.bound) bound_.emplace(std::pair(w->request.who, w->number), w.get());
  if (w->request.wait == patience::once && w->ahead > 0) {
    finish(w, {});
    return w;
  }
  auto deadline = w->request.deadline;
  if (w->request.wait == patience::once && step_ == step::barred)
    deadline = w->since + command_budget(around_.settings, w->request.asked.ttl) / 2;
  if (deadline != time_point::max())
    w->alarm.start(deadline, [this, id = std::weak_ptr(w)] {
      if (const auto late = id.lock()) time_out(late);
    });
  if (w->ahead == 0) advance();
  return w;
}

void waiting_line::leave(const std::shared_ptr<waiter>& w, error_code error, const std::string& detail) {
  if (w->done) finish(w, {error, detail, nullptr});
}

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

std::shared_ptr<waiter> waiting_line::extract(owner_id who) {
  const auto found = bound_.upper_bound({who, waiters_.front()->number});
  if (found == bound_.end() || found->first.first != who) return nullptr;
  auto w = found->second->shared_from_this();
  remove(w);
  return w;
}

void waiting_line::fail_all(error_code error, const std::string& detail) {
  const auto keep = shared_from_this();
  while (!waiters_.empty()) leave(waiters_.back(), error, detail);
}

// The last of them first: when the first leaves, the next of this owner would send an attempt in vain. Those that a
// handler adds meanwhile stay.
void waiting_line::fail_all_of(owner_id who, error_code error, const std::string& detail) {
  const auto keep = shared_from_this();
  const auto last_of = [this, who, newest = joined_] {
    const auto after = bound_.upper_bound({who, newest});
    const auto last = after == bound_.begin() ? bound_.end() : std::prev(after);
    return last == bound_.end() || last->first.first != who ? nullptr : last->second->shared_from_this();
  };
  while (const auto w = last_of()) leave(w, error, detail);
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
  if (!waiters_.empty()) on_failed(waiters_.front(), {error, false, detail});
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
  if (waiters_.front()->request.wait == patience::once || !host_.held_here()) return try_now();
  // Subscribed all the same: a force-unlock from elsewhere frees what we believe to hold.
  if (!subscription_) subscription_ = around_.servers.subscribe(keys_->channel, *this);
  park_while_held(nanoseconds::max(), around_.now());
}

void waiting_line::try_now() {
  HOLDFAST_ASSERT(!waiters_.empty() && step_ != step::trying);
  const auto& w = waiters_.front();
  if (parked_while_held()) known_held_ = around_.now();
  step_ = step::trying;
  woken_ = false;
  park_.stop();
  if (w->field.empty()) w->field = host_.new_field();
  const auto& asked = w->request;
  const bool once = asked.wait == patience::once;
  auto timeout = command_budget(around_.settings, asked.asked.ttl);
  if (once) {
    w->alarm.stop();  // from here on the command's timeout counts: what is left of it
    timeout -= around_.now() - w->since;
  }
  // Answered meanwhile, it is not in the line any more, and its field is being given back.
  w->attempt = around_.run(asked.kind->acquire(*keys_, asked.asked.ttl, w->field),
                           {.timeout = timeout, .rank = once ? urgency::refusable : urgency::patient, .patient = !once},
                           [w](outcome o) {
                             if (!w->done) return;
                             if (const auto line = w->line.lock()) line->answered(w, std::move(o));
                           });
}

void waiting_line::answered(const std::shared_ptr<waiter>& w, outcome o) {
  HOLDFAST_ASSERT(step_ == step::trying && w == waiters_.front());
  step_ = step::idle;
  w->sent = o.sent;
  if (o.error) {
    const bool outage = o.error == errc::unreachable || o.error == errc::unconfirmed || o.error == errc::server_refused;
    const server_error why{outage && o.error != errc::server_refused ? make_error_code(errc::unreachable) : o.error,
                           outage, o.detail};
    last_failure_ = why;  // no news: the connection has told
    if (o.error == errc::unconfirmed && ++w->unanswered >= most_unanswered) return stand_back(*w);
    return on_failed(w, why);
  }
  penalty_ = {};
  const auto said = w->request.kind->read_acquire(o.reply);
  if (said.error) {
    if (!o.reply.is_error()) ++w->unanswered;  // the script has run, and what it says nobody knows
    return on_failed(w, *said.error);
  }
  known_held_ = around_.now();
  last_failure_ = {};
  switch (said.value.what) {
    case acquire_answer::kind::acquired: return on_acquired(w, said.value.token);
    case acquire_answer::kind::busy: return on_busy(w, said.value.holder_ttl);
    case acquire_answer::kind::busy_without_ttl:
      return finish(w, {errc::corrupt_lock, "its key has no TTL, so it would never end", nullptr});
  }
}

void waiting_line::on_acquired(const std::shared_ptr<waiter>& w, std::optional<std::uint64_t> token) {
  const auto ttl = w->request.asked.ttl;
  if (around_.now() >= valid_until(w->sent, ttl, around_.settings.drift) - min_validity(ttl)) {
    abandon_field(*w);
    return on_failed(w, {errc::unreachable, true, "the grant came too late to be of use"});
  }
  w->unanswered = 0;
  w->backoff.reset();
  wake_ups_.granted();
  auto record = host_.granted(*w, token);
  w->field.clear();      // the hold's from now on
  if (!w->done) return;  // the handler of a re-entry that moved to the hold has ended this waiter
  finish(w, {{}, {}, std::move(record)});
}

// What it was granted, or may still be, is given back; the next attempt has a field of its own.
void waiting_line::abandon_field(waiter& w) {
  HOLDFAST_ASSERT(!w.field.empty());
  w.unanswered = 0;
  host_.give_back(std::exchange(w.field, {}), w.request.asked.ttl, [id = weak_from_this()] {
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

void waiting_line::stand_back(waiter& w) {
  penalty_ = std::clamp(2 * penalty_, least_penalty, longest_penalty);
  step_ = step::barred;
  abandon_field(w);
}

void waiting_line::on_busy(const std::shared_ptr<waiter>& w, milliseconds holder_ttl) {
  w->backoff.reset();
  wake_ups_.found_busy(w->sent, around_.now(), holder_ttl);
  if (w->request.wait == patience::once) return finish(w, {});
  const bool again = subscription_ && woken_;
  // What was published before the acknowledgement is missed: on_subscribed() tries again.
  if (!subscription_) subscription_ = around_.servers.subscribe(keys_->channel, *this);
  park_while_held(holder_ttl, w->sent);
  if (again) wake();
}

void waiting_line::on_failed(const std::shared_ptr<waiter>& w, const server_error& why) {
  if (!w->done) return;
  const bool news = why.code != std::exchange(last_failure_, why).code;
  if (!why.retry || w->request.wait == patience::once) return finish(w, {why.code, why.text, nullptr});
  // The connection tells of its own outages; of a server that answers and will not write nobody else does.
  if (news && why.code == errc::server_refused)
    around_.report({.what = event::kind::outage, .name = keys_->name, .reason = why.code, .detail = why.text});
  const auto pause = w->backoff.next(around_.random);
  const bool barred = w->unanswered == 0 && penalty_ > nanoseconds::zero();
  park_for(std::max(pause, penalty_), barred ? step::barred : step::parked);
}

// A lock may become free without a message.
nanoseconds waiting_line::longest_park() {
  const nanoseconds cap = around_.settings.poll_cap;
  return cap - around_.random.up_to(cap / 10);
}

// What was so when Redis was asked: a process that was stopped since has slept through a part of it.
void waiting_line::park_while_held(nanoseconds holder_ttl, time_point asked) {
  const auto capped = longest_park();
  // Redis keeps a key through the millisecond in which it ends.
  const nanoseconds least = milliseconds(1) + around_.random.up_to(milliseconds(1));
  const auto pause = holder_ttl < capped ? holder_ttl + least : capped;
  park_for(std::max(pause - (around_.now() - asked), least));
}

void waiting_line::park_for(nanoseconds pause, step how) {
  HOLDFAST_ASSERT(!waiters_.empty());
  step_ = how;
  park_.start(around_.now() + pause, [this] {
    if (step_ == step::barred) step_ = step::idle;
    advance();
  });
}

void waiting_line::time_out(const std::shared_ptr<waiter>& w) {
  if (!w->done) return;
  if (w->request.wait == patience::once) return try_now();  // the other half of its time is for the answer
  const bool behind = w != waiters_.front() && !last_failure_.code && known_held_;  // of others who hear from Redis
  const bool held = parked_while_held() || host_.held_here();
  if (behind || held || (known_held_ && *known_held_ >= w->since)) return finish(w, {});
  const bool outage = last_failure_.code == errc::unreachable;
  if (last_failure_.code && !outage) return finish(w, {last_failure_.code, last_failure_.text, nullptr});
  // A connection that is there has answered others meanwhile, or had no time to: the lock was not had in time.
  if (around_.servers.answering(keys_->lock)) return finish(w, {});
  finish(w, {errc::unreachable, around_.servers.trouble(keys_->lock).detail, nullptr});
}

// Not after a failure, which says nothing of the lock.
bool waiting_line::parked_while_held() const { return step_ == step::parked && !last_failure_.code; }

void waiting_line::remove(const std::shared_ptr<waiter>& w) {
  const bool was_first = w == waiters_.front();
  waiters_.erase(w->place);
  if (w->request.bound) bound_.erase({w->request.who, w->number});
  w->alarm.stop();
  bool sent = w->unanswered > 0;
  if (was_first && step_ == step::trying) {
    step_ = step::idle;
    if (!withdraw(w->attempt)) sent = true;  // what was never written needs no compensation
  }
  if (sent && !w->field.empty()) abandon_field(*w);
  HOLDFAST_ASSERT(!sent || w->field.empty());
  if (waiters_.empty()) subscription_.reset();
  // A parked line stays parked for its new first: what it waits for holds for the next as well. So does a barred one.
  if (was_first && (step_ == step::idle || waiters_.empty())) advance();
}

void waiting_line::finish(const std::shared_ptr<waiter>& answered, lock_answer a) {
  const auto w = answered;
  const auto keep = shared_from_this();
  const auto done = std::exchange(w->done, {});
  remove(w);
  report(*w, a);
  done(std::move(a));
}

void waiting_line::report(const waiter& w, const lock_answer& a) {
  if (!around_.settings.observer) return;
  const auto now = around_.now();
  auto e = a.record ? event_of(event::kind::acquired, *a.record->of, now)
                    : event{.what = end_of_call(a.error), .name = keys_->name, .reason = a.error};
  e.waited = now - w.since;
  e.waiters = w.ahead;
  e.detail = a.detail;
  e.owner = w.request.who;
  e.ttl = w.request.asked.ttl;
  around_.report(e);
}

}  // namespace holdfast::detail
