// SPDX-License-Identifier: BSL-1.0
#include "sync/line/waiting_line.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "protocol/derived_keys.hpp"
#include "sync/hold/lease_record.hpp"

namespace holdfast::detail {

namespace {

/// Each copy of an acquire may take the lock for a waiter who cannot hear of it. After so many the others have their
/// turn.
constexpr unsigned most_unanswered = 2;
/// Where several primaries are divided among several callers, each tries again after a random pause, so that one is
/// first. If that has not helped so often, somebody holds it, and not at all of them.
constexpr unsigned quick_rounds = 10;
constexpr nanoseconds longest_linger = std::chrono::seconds(1);
constexpr nanoseconds least_backoff_delay = milliseconds(20), longest_backoff_delay = std::chrono::seconds(1);
/// The message of release.lua on the sharded channel if it publishes on both. Redisson reads the number 0.
constexpr std::string_view copy_on_sharded_channel = "00";

}  // namespace

// The states of a line, when none of its calls is running. Inside a call a line is idle between two steps.
//
//   step     waiters  park_ runs  pending_giveback_  ends by
//   idle     none     no          0         join(); only a new line is so
//   idle     none     yes         0         join(), stop_lingering() or the alarm: then the line is destroyed
//   trying   some     no          any       an answer, what told() brings, or the first waiter leaves
//   parked   some     yes         any       the alarm, wake(), or the subscription fails
//   barred   any      no          > 0       on_tried(), or a first try_lock() at half of its time
//   barred   some     yes         any       the alarm, or a first try_lock() at half of its time
//
// A line that is parked or barred stays so for its next waiter when the first one leaves. When the last one leaves, a
// barred line without an alarm stays, and any other line lingers or is destroyed. A line with waiters that has neither
// an attempt, an alarm nor a release under way is stuck(), for lack of memory.
// pending_giveback_ > 0 while trying: a try_lock() at half of its time, or an attempt that is repeated at once.
//
//   flag              idle      trying    parked    barred    moved by
//   woken_            old       yes       old       old       set by wake(), cleared by try_now()
//   resting_          old       no        yes       yes       set by go_on() while others have their turns; cleared by
//                                                             try_now(), or while this client holds
//   lingers_          yes       no        no        no one    set when the last waiter leaves; cleared by join(),
//                                                             stop_lingering() or the end of the line
//   incentive_        yes       yes       yes       yes       set by wake() or the alarm, cleared by on_attempt()
//   subscription_     lingers   yes       yes       yes       set by subscribe(); cleared with the last waiter, unless
//                                                             the line lingers, and when the server refuses it
//   listens_          as subscription_; without it the flag is old    set by on_subscribed()
//   first().granted   -         yes       no        no        from a grant until replicas have it, or the field is
//                                                             given back
//   backoff_delay_ > 0      yes       yes       yes       yes       doubled by back_off(), cleared by an answer of Redis
//   last_failure_     yes       yes       yes       yes       set by a failure, cleared by an answer about the lock
//   known_held_       yes       yes       yes       yes       set by each answer about the lock; only its time counts
//   granted_in_part_  yes       yes       yes       yes       set by a divided vote; cleared by a grant, or by busy
//
// yes: possible. old: left from an earlier step. no one: only without waiters, and then the line lingers next.
// "Parked while held" is derived: parked, with neither last_failure_ nor resting_.

waiting_line::waiting_line(environment& around, owner_fields& fields, line_host& host, shared_keys keys)
    : around_(around), fields_(fields), host_(host), keys_(std::move(keys)), park_(around.alarms) {}

// The engine ends: whoever can cancel a waiter may keep it alive.
waiting_line::~waiting_line() {
  while (!waiters_.empty()) take_out(first())->forget_caller();
}

void waiting_line::join(std::shared_ptr<acquisition> who) {
  HOLDFAST_ASSERT(!waiters_.empty() || step_ == step::idle || step_ == step::blocked_on_release);
  if (std::exchange(lingers_, false)) park_.stop();
  auto& w = *who;
  w.seat.ahead = static_cast<unsigned>(waiters_.size());
  w.seat.number = ++joined_;
  waiters_.push_back(w.seat);
  w.seat.kept = std::move(who);
  try {
    if (w.request.bound) bound_.emplace(std::pair(w.request.who, w.seat.number), &w);
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
  // Nobody answers a first question in an outage; where nobody counts, that need not be looked up for each call.
  const bool in_vain = around_.settings.observer && around_.servers.in_outage(keys_->lock);
  if (w.seat.ahead > 0 || in_vain) w.stand_in_line();
  if (once && step_ == step::blocked_on_release) w.wake_at(around_.now() + w.time_left() / 2);
  if (w.seat.ahead > 0) return;
  if (!w.request.found_taken || step_ == step::blocked_on_release) return go_on();
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
  if (!was_first || step_ == step::blocked_on_release) return;
  step_ = step::idle;
  subscription_.reset();
  advance();
}

void waiting_line::stop_lingering() {
  lingers_ = false;
  subscription_.reset();
  advance();
}

void waiting_line::leave(acquisition& w, lock_answer why) { finish(w, std::move(why)); }

void waiting_line::wake(incentive why) {
  if (step_ == step::trying) woken_ = true;
  if (step_ != step::parked) return;
  if (resting_ && rest() > nanoseconds::zero()) return or_without_memory([this] { park_for(rest()); });
  if (wake_ups_.next() <= around_.now()) {
    wake_ups_.spend(around_.now());
    incentive_ = why;
    advance();
  } else if (park_.due() > wake_ups_.next()) {
    or_without_memory([&] { park_.start(wake_ups_.next(), [this, why] { wake(why); }); });
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
  each_step all;
  for (auto w = leaving.rbegin(); w != leaving.rend(); ++w) all([&] { leave(**w, {error, detail, nullptr}); });
  all.rethrow();
}

void waiting_line::on_subscribed() {
  listens_ = true;
  wake(incentive::none);
}

// A client that publishes on both channels listens on both. The copy would wake it a second time, and count as the turn
// of another client.
void waiting_line::on_message(std::string_view payload) {
  if (keys_->word == publish_word::both && payload == copy_on_sharded_channel) return;
  heard_that_it_is_free(host_.hears_itself());
}

// Most often of an attempt that was given back: nobody's turn has ended.
void waiting_line::on_rumour(std::string_view) { heard_that_it_is_free(false); }

void waiting_line::heard_that_it_is_free(bool by_ourselves) {
  if (!waiters_.empty()) first().seat.splits = 0;
  if (!host_.held_here()) return wake();
  // Most often the echo of our own release; if not, somebody has force-unlocked what we hold.
  if (!by_ourselves) host_.doubt_hold_here();
}

void waiting_line::on_subscribe_failed(error_code error, const std::string& detail) {
  subscription_.reset();
  if (step_ == step::parked) step_ = step::idle;  // the next does not wait for messages that will not come
  or_without_memory([&] {
    if (!waiters_.empty()) on_failed(first(), {static_cast<errc>(error.value()), detail});
  });
}

// The first of the line, perhaps a new one, does what comes next. If there is no memory for that, it is answered
// unreachable, and the next one becomes the first: nobody waits for an attempt that was not begun.
void waiting_line::advance() {
  if (waiters_.empty()) return go_on();
  or_without_memory([this] { go_on(); });
}

template <class Act>
void waiting_line::or_without_memory(Act act) {
  const auto keep = shared_from_this();
  if (!if_memory(act)) answer_stuck();
}

void waiting_line::answer_stuck() noexcept {
  const auto keep = shared_from_this();
  while (stuck()) if_memory([this] { finish(first(), without_memory()); });
}

bool waiting_line::stuck() const noexcept {
  if (waiters_.empty() || step_ == step::trying) return false;
  return step_ == step::idle || (!park_.due() && (step_ == step::parked || pending_giveback_ == 0));
}

void waiting_line::go_on() {
  if (step_ == step::trying) return;
  if (pending_giveback_ > 0) {
    step_ = step::blocked_on_release;
    return park_.stop();
  }
  if (waiters_.empty()) {
    step_ = step::idle;
    park_.stop();
    const auto linger = [this] { park_.start(around_.now() + longest_linger, [this] { stop_lingering(); }); };
    if (lingers_ && if_memory(linger)) return;
    lingers_ = false;
    subscription_.reset();
    return host_.line_empty();
  }
  if (may_reenter(first())) return leave_to_reenter(first());
  if (first().asks_once()) return try_now();
  if (!host_.held_here()) {
    const auto pause = rest();
    if (pause <= nanoseconds::zero()) return try_now();
    subscribe();  // each release of another brings its end nearer
    resting_ = true;
    return park_for(pause);
  }
  resting_ = false;
  // Subscribed all the same: a force-unlock from elsewhere frees what we believe to hold.
  subscribe();
  park_while_held(nanoseconds::max(), around_.now(), nanoseconds::max());
}

void waiting_line::subscribe() {
  if (subscription_) return;
  listens_ = false;
  subscription_ = around_.servers.subscribe(channel_of(*keys_), *this);
}

void waiting_line::try_now() {
  HOLDFAST_ASSERT(!waiters_.empty() && step_ != step::trying);
  auto& w = first();
  if (parked_while_held()) known_held_ = around_.now();
  step_ = step::trying;
  woken_ = resting_ = false;
  park_.stop();
  const auto& asked = w.request;
  const auto& steps = w.keys->of;
  const bool once = w.asks_once();
  const bool never_asked = !once && !asked.found_taken && !asked.whole && w.seat.field.empty();
  w.seat.first_try = never_asked && steps.first_acquire.make;
  if (w.seat.field.empty()) w.seat.field = fields_.next();
  if (once) w.stop_alarm();  // from here on the command's timeout counts
  if (asked.whole) return asked.whole->part_is_first(asked.part);
  try {
    send_attempt(w);
  } catch (...) {
    step_ = step::idle;
    throw;
  }
}

void waiting_line::send_attempt(acquisition& w) {
  const auto& asked = w.request;
  const auto& steps = w.keys->of;
  const bool once = w.asks_once();
  auto timeout = once ? w.time_left() : command_budget(around_.settings, asked.asked.ttl);
  if (steps.voted) timeout = std::min(timeout, vote_budget(around_.settings, asked.asked.ttl));
  const auto& step = w.seat.first_try ? steps.first_acquire : steps.acquire;
  w.send(around_, step.make(*w.keys, asked.asked.ttl, w.seat.field).with_token_ttl(around_.settings.token_ttl),
         {.timeout = timeout, .rank = once ? urgency::refusable : urgency::awaited, .waits_for_reply = !once});
}

void waiting_line::attempt_answered(acquisition& w, const outcome& o) {
  if (!if_memory([&] { on_answer(w, o); }) && w.seat.kept) answer_stuck();  // else it has left, and the line went on
}

void waiting_line::on_answer(acquisition& w, const outcome& o) {
  HOLDFAST_ASSERT(step_ == step::trying && &w == &first());
  auto said = (w.seat.first_try ? w.keys->of.first_acquire : w.keys->of.acquire).read(o);
  const bool refused = !o.error && o.reply.is_error();
  if (!w.seat.first_try || !refused)
    return on_attempt(w, {std::move(said), !o.error, o.sent, o.yes, o.may_have_run, o.server});
  // It may be held, by somebody who was let write: acquire looks.
  step_ = step::idle;
  backoff_delay_ = {};
  try_now();
}

void waiting_line::told(acquisition& w, const attempt& what) {
  or_without_memory([&] { on_attempt(w, what); });
}

void waiting_line::on_attempt(acquisition& w, const attempt& what) {
  HOLDFAST_ASSERT(step_ == step::trying && &w == &first());
  step_ = step::idle;
  const auto& said = what.said;
  count_incentive(what);
  if (what.answered) backoff_delay_ = {};
  // Some of several primaries may have granted it.
  const bool in_part = w.keys->of.voted && (said.failed || said.value.what != acquire_answer::kind::acquired);
  if (in_part) abandon_field(w, what.may_have_run);
  if (said.failed) {
    if (!what.answered) last_failure_ = said.failed;  // no news: the connection has told
    if (!in_part && said.failed->may_have_run) ++w.seat.unanswered;
    if (w.seat.unanswered >= most_unanswered && !what.answered && !w.asks_once()) return back_off(w);
    return on_failed(w, *said.failed);
  }
  const auto now = around_.now();
  known_held_ = now;
  last_failure_.reset();
  switch (said.value.what) {
    case acquire_answer::kind::acquired:
      return w.request.asked.min_replicas > 0 ? wait_for_replicas(w, what) : on_acquired(w, what, now);
    case acquire_answer::kind::busy: return on_busy(w, what, now);
    case acquire_answer::kind::busy_without_ttl:
      return finish(w, {errc::corrupt_lock, "its key has no TTL, so it would never end", nullptr});
  }
}

void waiting_line::count_incentive(const attempt& what) {
  const auto why = std::exchange(incentive_, incentive::none);
  if (why == incentive::none || what.said.failed) return;
  using kind = measurement_kind;
  const bool had = what.said.value.what == acquire_answer::kind::acquired;
  around_.count(why == incentive::poll ? kind::polled : had ? kind::woken : kind::woken_in_vain, *keys_);
}

// Whoever leaves meanwhile gives its field back.
void waiting_line::wait_for_replicas(acquisition& w, const attempt& what) {
  step_ = step::trying;
  w.seat.granted = true;
  w.seat.unanswered = 1;
  const auto& asked = w.request.asked;
  auto then = [id = weak_from_this(), who = std::weak_ptr(w.seat.kept), field = w.seat.field,
               what](const std::optional<failure>& too_few) {
    const auto line = id.lock();
    const auto still = who.lock();
    if (line && still && still->seat.granted && still->seat.field == field)
      line->or_without_memory([&] { line->on_replicas(*still, what, too_few); });
  };
  try {
    around_.when_replicated(keys_->lock, asked.min_replicas, what.server,
                            valid_until(what.sent, asked.ttl, around_.settings.drift), std::move(then));
  } catch (...) {
    step_ = step::idle;
    throw;
  }
}

void waiting_line::on_replicas(acquisition& w, const attempt& what, const std::optional<failure>& too_few) {
  HOLDFAST_ASSERT(step_ == step::trying && &w == &first());
  step_ = step::idle;
  w.seat.granted = false;
  if (!too_few) return on_acquired(w, what, around_.now());
  abandon_field(w);
  around_.report({.what = event_kind::not_replicated,
                  .name = keys_->name,
                  .reason = too_few->code,
                  .detail = too_few->detail,
                  .owner = w.request.who,
                  .ttl = w.request.asked.ttl});
  on_failed(w, *too_few);
}

void waiting_line::on_acquired(acquisition& w, const attempt& what, time_point now) {
  const auto ttl = w.request.asked.ttl;
  if (now >= valid_until(what.sent, ttl, around_.settings.drift) - min_validity(ttl)) {
    abandon_field(w);
    return on_failed(w, {errc::unreachable, "the grant came too late to be of use"});
  }
  wake_ups_.granted();
  polled_ = {};
  granted_in_part_ = 0;
  w.seat.unanswered = 1;  // where there is no memory for its hold, it is given back
  auto record = host_.granted(w, {w.seat.field, what.said.value.token, what.sent, now, what.yes, what.may_have_run,
                                  what.said.value.spare_tokens});
  if (w.keys->of.voted) w.got = record->of->on;
  w.seat.unanswered = 0;
  w.seat.field.clear();  // the hold's from now on
  finish(w, {{}, {}, std::move(record)});
}

const acquisition* waiting_line::successor() const noexcept {
  if (waiters_.empty() || step_ == step::trying) return nullptr;
  const auto& w = *waiters_.front().kept;
  return w.request.whole || w.asks_once() ? nullptr : &w;
}

void waiting_line::inherited(std::shared_ptr<lease_record> record) {
  known_held_ = around_.now();
  last_failure_.reset();
  wake_ups_.granted();
  finish(first(), {{}, {}, std::move(record)});
}

// What it was granted, or may still be, is given back; the next attempt has a field of its own.
void waiting_line::abandon_field(acquisition& w, primary_set at) {
  HOLDFAST_ASSERT(!w.seat.field.empty());
  w.seat.unanswered = 0;
  w.seat.granted = false;
  const auto field = std::exchange(w.seat.field, {});
  if (at == nowhere) return;
  const auto tried = [id = weak_from_this()] {
    if (const auto line = id.lock()) line->on_tried();
  };
  ++pending_giveback_;
  try {
    host_.give_back(field, w.request.asked.ttl, tried, at);
  } catch (...) {
    --pending_giveback_;
    throw;
  }
}

void waiting_line::on_tried() {
  HOLDFAST_ASSERT(pending_giveback_ > 0);
  if (--pending_giveback_ > 0 || step_ != step::blocked_on_release || park_.due()) return;
  or_without_memory([this] {
    if (backoff_delay_ > nanoseconds::zero() && !waiters_.empty())
      return park_for(backoff_delay_, step::blocked_on_release);
    step_ = step::idle;
    go_on();
  });
}

void waiting_line::back_off(acquisition& w) {
  backoff_delay_ = std::clamp(2 * backoff_delay_, least_backoff_delay, longest_backoff_delay);
  step_ = step::blocked_on_release;
  try {
    abandon_field(w);
  } catch (...) {
    step_ = step::idle;
    throw;
  }
}

// Barred: what others give back in their turn says nothing. The answers that a stopped process has found in its sockets
// seem to have taken as long as it was stopped.
void waiting_line::park_divided(acquisition& w, nanoseconds slowest) {
  ++w.seat.splits;
  park_for(around_.random.up_to(std::min(2 * slowest, longest_backoff_delay)), step::blocked_on_release);
}

void waiting_line::on_busy(acquisition& w, const attempt& what, time_point now) {
  const auto& said = what.said.value;
  const auto holder_ttl = said.holder_ttl;
  w.backoff.reset();
  if (!holder_ttl && subscription_) return try_now();  // no acknowledgement comes, after which it would
  if (holder_ttl) wake_ups_.found_busy(what.sent, now, *holder_ttl);
  const auto again_after = said.split ? nanoseconds::max() : host_.found_busy();
  if (may_reenter(w)) return leave_to_reenter(w);
  if (w.asks_once()) return finish(w, {});
  granted_in_part_ = said.split ? what.yes : 0;
  if (said.split && w.seat.splits < quick_rounds) return park_divided(w, *said.split);
  if (!said.split) w.seat.splits = 0;
  const bool again = subscription_ && woken_;
  // What was published before the acknowledgement is missed: on_subscribed() tries again.
  subscribe();
  const auto ttl_left = holder_ttl ? nanoseconds(*holder_ttl) : nanoseconds::max();
  park_while_held(ttl_left, what.sent, std::min(next_poll(), again_after));
  if (again) wake();
}

// Its owner was granted the lock by another way: as one of several, or as all of them.
bool waiting_line::may_reenter(const acquisition& w) const {
  return w.request.bound && !w.request.one_of_several && host_.held_by(w.request.who);
}

// The line may be gone by then; its host has a hold.
void waiting_line::leave_to_reenter(acquisition& w) {
  auto& host = host_;
  const auto who = w.seat.kept;
  remove(w);
  host.reenter(who);
}

// The connection of a try_lock() has ended before its time. The second copy finds its own field, if the first one has
// run.
bool waiting_line::may_ask_again(const acquisition& w, const failure& why) const {
  const bool lost = why.may_have_run && why.mends_itself() && w.seat.unanswered == 1;
  return lost && w.asks_once() && !w.request.whole && w.time_left() > nanoseconds::zero();
}

void waiting_line::on_failed(acquisition& w, const failure& why) {
  const auto before = std::exchange(last_failure_, why);
  const bool news = !before || before->code != why.code;
  if (may_ask_again(w, why)) return try_now();
  if (!why.mends_itself() || w.asks_once()) return finish(w, {why.code, why.detail, nullptr});
  // The connection tells of its own outages; of a server that answers and will not write nobody else does.
  if (news && why.code == errc::server_refused)
    around_.report({.what = event_kind::outage, .name = keys_->name, .reason = why.code, .detail = why.detail});
  const auto pause = w.backoff.next(around_.random);
  const bool blocked_on_release = w.seat.unanswered == 0 && backoff_delay_ > nanoseconds::zero();
  park_for(std::max(pause, backoff_delay_), blocked_on_release ? step::blocked_on_release : step::parked);
}

// Who has a deadline asks once before it, all the same.
nanoseconds waiting_line::rest() const {
  auto until = host_.cool_down_until();
  const auto& w = *waiters_.front().kept;
  if (until <= w.since()) return {};
  if (w.request.deadline != time_point::max())
    until = std::min(until, w.since() + (w.request.deadline - w.since()) / 2);
  return until - around_.now();
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
  step_ = step::idle;  // until there is a timer
  first().stand_in_line();
  park_.start(around_.now() + pause, [this] {
    if (parked_while_held() && !host_.held_here()) {
      polled_ = 2 * std::clamp<nanoseconds>(polled_, keys_->of.polls.first, keys_->of.polls.longest);
      incentive_ = incentive::poll;
    }
    if (step_ == step::blocked_on_release) step_ = step::idle;
    advance();
  });
  step_ = how;
}

// Only Redis or a hold of this client says busy. A server that has answered others meanwhile had no time for this
// attempt: the answer is empty. A silent server may be gone, and the state of the lock is unknown.
void waiting_line::time_out(acquisition& w) {
  or_without_memory([&] { on_time_out(w); });
}

void waiting_line::on_time_out(acquisition& w) {
  if (w.seat.granted) return finish(w, {errc::not_replicated, "not in time", nullptr});
  if (w.asks_once()) return try_now();  // the other half of its time is for the answer
  const bool held = parked_while_held() || host_.held_here();
  if (held || (known_held_ && *known_held_ >= w.since())) return finish(w, {});
  if (last_failure_ && last_failure_->code != errc::unreachable)
    return finish(w, {last_failure_->code, last_failure_->detail, nullptr});
  const bool asks = step_ == step::trying && &w == &first();
  const auto silence = asks ? w.silence_of_attempt() : around_.servers.silence_since(keys_->lock, w.since());
  finish(w, silence ? lock_answer{silence->code, silence->detail, nullptr} : lock_answer());
}

// Not after a failure, nor in a rest: these say nothing of the lock.
bool waiting_line::parked_while_held() const { return step_ == step::parked && !last_failure_ && !resting_; }

std::shared_ptr<acquisition> waiting_line::take_out(acquisition& w) {
  waiters_.erase(waiters_.iterator_to(w.seat));
  if (w.request.bound) bound_.erase({w.request.who, w.seat.number});
  return std::move(w.seat.kept);
}

void waiting_line::remove(acquisition& w, bool served) {
  const bool was_first = &w == &first();
  const auto keep = take_out(w);
  auto sent_to = w.seat.unanswered > 0 ? everywhere : nowhere;
  if (was_first && step_ == step::trying) {
    step_ = step::idle;
    sent_to |= w.withdraw_attempt();  // what was never written needs no compensation
  }
  each_step all;  // if there is no memory to give a field back, the others still go on
  if (sent_to != nowhere && !w.seat.field.empty()) all([&] { abandon_field(w, sent_to); });
  HOLDFAST_ASSERT(sent_to == nowhere || w.seat.field.empty());
  if (waiters_.empty()) {
    lingers_ = (served || w.asks_once()) && subscription_ && host_.may_linger();
    if (!lingers_) subscription_.reset();
  } else if (was_first && step_ == step::parked && resting_) {
    all([this] { park_for(rest()); });
  }
  // A parked line stays parked for its new first: what it waits for holds for the next as well. So does a barred one.
  if (was_first && (step_ == step::idle || waiters_.empty())) advance();
  all.rethrow();
}

// The caller last: where there is no memory for its answer, the line still goes on. The line may be gone by then. And
// where the line finds none to go on, the caller is answered all the same: its lease is of a hold that stands.
void waiting_line::finish(acquisition& w, lock_answer&& a) {
  const auto keep = w.seat.kept;
  const auto event_for = [&w](const lock_answer& said) {
    auto e = said.record
                 ? event_of(event_kind::acquired, *said.record->of, said.record->of->granted_at)
                 : hold_event{{.what = end_of_call(said.error), .name = w.keys->name, .lock_kind = w.keys->of.name}};
    e.what.waiters = w.seat.ahead;
    return e;
  };
  try {
    remove(w, a.record != nullptr);
  } catch (...) {
    w.answer(std::move(a), event_for);
    throw;
  }
  w.answer(std::move(a), event_for);
}

}  // namespace holdfast::detail
