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
//   trying   some     no          any       an answer, the result that settled() brings, or the first waiter leaves
//   parked   some     yes         any       the alarm, wake(), or the subscription fails
//   blocked  any      no          > 0       on_tried(), or a first try_lock() at half of its time
//   blocked  some     yes         any       the alarm, or a first try_lock() at half of its time
//
// A line that is parked or blocked stays so for its next waiter when the first one leaves. When the last one leaves, a
// blocked line without an alarm stays, and any other line lingers or is destroyed. A line with waiters that has neither
// an attempt, an alarm nor a release under way is stuck(), for lack of memory.
// pending_giveback_ > 0 while trying: a try_lock() at half of its time, or an attempt that is repeated at once.
//
//   flag              idle      trying    parked    blocked   moved by
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
//   backoff_delay_    yes       yes       yes       yes       above 0: doubled by back_off(), cleared by an answer
//   last_failure_     yes       yes       yes       yes       set by a failure, cleared by an answer about the lock
//   known_held_       yes       yes       yes       yes       set by each answer about the lock; only its time counts
//   granted_in_part_  yes       yes       yes       yes       set by a divided vote; cleared by a grant, or by busy
//
// yes: possible. old: left from an earlier step. no one: only without waiters, and then the line lingers next.
// "Parked while held" is derived: parked, with neither last_failure_ nor resting_.

waiting_line::waiting_line(environment& env, owner_fields& fields, line_host& host, shared_keys keys)
    : env_(env), fields_(fields), host_(host), keys_(std::move(keys)), park_(env.alarms) {}

// The engine ends: whoever can cancel a waiter may keep it alive.
waiting_line::~waiting_line() {
  while (!waiters_.empty()) take_out(first())->forget_caller();
}

void waiting_line::join(std::shared_ptr<acquisition> waiter) {
  HOLDFAST_ASSERT(!waiters_.empty() || step_ == step::idle || step_ == step::blocked_on_release);
  if (std::exchange(lingers_, false)) park_.stop();
  auto& caller = *waiter;
  caller.seat.ahead = static_cast<unsigned>(waiters_.size());
  caller.seat.number = ++joined_;
  waiters_.push_back(caller.seat);
  caller.seat.kept = std::move(waiter);
  try {
    if (caller.request.bound) bound_.emplace(std::pair(caller.request.owner, caller.seat.number), &caller);
    begin(caller);
  } catch (const std::bad_alloc&) {
    take_back(caller);
    throw;
  }
}

void waiting_line::begin(acquisition& waiter) {
  waiter.wait_in(*this);
  const bool once = waiter.asks_once();
  if (once && waiter.seat.ahead > 0) return finish(waiter, {});
  // Nobody answers a first question in an outage; where nobody counts, that need not be looked up for each call.
  const bool in_vain = env_.settings.observer && env_.servers.in_outage(keys_->lock);
  if (waiter.seat.ahead > 0 || in_vain) waiter.stand_in_line();
  if (once && step_ == step::blocked_on_release) waiter.wake_at(env_.now() + waiter.time_left() / 2);
  if (waiter.seat.ahead > 0) return;
  if (!waiter.request.found_taken || step_ == step::blocked_on_release) return go_on();
  known_held_ = env_.now();
  subscribe();
  park_while_held(nanoseconds::max(), env_.now(), next_poll());
}

// Its caller hears that there was no memory, and could cancel nothing.
void waiting_line::take_back(acquisition& waiter) {
  if (!waiter.seat.hook.is_linked()) return;
  const bool was_first = &waiter == &first();
  const auto keep = take_out(waiter);
  waiter.forget_caller();
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

void waiting_line::leave(acquisition& waiter, lock_answer why) { finish(waiter, std::move(why)); }

void waiting_line::wake(incentive why) {
  if (step_ == step::trying) woken_ = true;
  if (step_ != step::parked) return;
  if (resting_ && rest() > nanoseconds::zero()) return or_without_memory([this] { park_for(rest()); });
  if (wake_ups_.next() <= env_.now()) {
    wake_ups_.spend(env_.now());
    incentive_ = why;
    advance();
  } else if (park_.due() > wake_ups_.next()) {
    or_without_memory([&] { park_.start(wake_ups_.next(), [this, why] { wake(why); }); });
  }
}

std::shared_ptr<acquisition> waiting_line::extract(owner_id owner) {
  if (waiters_.empty()) return nullptr;
  for (auto seat = bound_.upper_bound({owner, waiters_.front().number});
       seat != bound_.end() && seat->first.first == owner; ++seat)
    if (!seat->second->request.one_of_several) return take_out(*seat->second);
  return nullptr;
}

void waiting_line::fail_all_of(owner_id owner, error_code error, const char* detail) {
  std::vector<std::shared_ptr<acquisition>> leaving;
  for (auto seat = bound_.upper_bound({owner, 0}); seat != bound_.end() && seat->first.first == owner; ++seat)
    leaving.push_back(seat->second->seat.kept);
  each_step all;
  for (auto seat = leaving.rbegin(); seat != leaving.rend(); ++seat)
    all([&] { leave(**seat, {error, detail, nullptr}); });
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
    const auto linger = [this] { park_.start(env_.now() + longest_linger, [this] { stop_lingering(); }); };
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
  park_while_held(nanoseconds::max(), env_.now(), nanoseconds::max());
}

void waiting_line::subscribe() {
  if (subscription_) return;
  listens_ = false;
  subscription_ = env_.servers.subscribe(channel_of(*keys_), *this);
}

void waiting_line::try_now() {
  HOLDFAST_ASSERT(!waiters_.empty() && step_ != step::trying);
  auto& waiter = first();
  if (parked_while_held()) known_held_ = env_.now();
  step_ = step::trying;
  woken_ = resting_ = false;
  park_.stop();
  const auto& asked = waiter.request;
  const auto& steps = waiter.keys->of;
  const bool once = waiter.asks_once();
  const bool never_asked = !once && !asked.found_taken && !asked.whole && waiter.seat.field.empty();
  waiter.seat.first_try = never_asked && steps.first_acquire.make;
  if (waiter.seat.field.empty()) waiter.seat.field = fields_.next();
  if (once) waiter.stop_alarm();  // from here on the command's timeout counts
  if (asked.whole) return asked.whole->part_is_first(asked.part);
  try {
    send_attempt(waiter);
  } catch (...) {
    step_ = step::idle;
    throw;
  }
}

void waiting_line::send_attempt(acquisition& waiter) {
  const auto& asked = waiter.request;
  const auto& steps = waiter.keys->of;
  const bool once = waiter.asks_once();
  auto timeout = once ? waiter.time_left() : command_budget(env_.settings, asked.asked.ttl);
  if (steps.voted) timeout = std::min(timeout, vote_budget(env_.settings, asked.asked.ttl));
  const auto& step = waiter.seat.first_try ? steps.first_acquire : steps.acquire;
  waiter.send(env_, step.make(*waiter.keys, asked.asked.ttl, waiter.seat.field).with_token_ttl(env_.settings.token_ttl),
              {.timeout = timeout, .rank = once ? urgency::refusable : urgency::awaited, .waits_for_reply = !once});
}

void waiting_line::attempt_answered(acquisition& waiter, const outcome& outcome) {
  if (!if_memory([&] { on_answer(waiter, outcome); }) && waiter.seat.kept)
    answer_stuck();  // else it has left, and the line went on
}

void waiting_line::on_answer(acquisition& waiter, const outcome& outcome) {
  HOLDFAST_ASSERT(step_ == step::trying && &waiter == &first());
  auto reply = (waiter.seat.first_try ? waiter.keys->of.first_acquire : waiter.keys->of.acquire).read(outcome);
  const bool refused = !outcome.error && outcome.reply.is_error();
  if (!waiter.seat.first_try || !refused)
    return on_attempt(
        waiter, {std::move(reply), !outcome.error, outcome.sent, outcome.yes, outcome.may_have_run, outcome.server});
  // It may be held, by somebody who was let write: acquire looks.
  step_ = step::idle;
  backoff_delay_ = {};
  try_now();
}

void waiting_line::settled(acquisition& waiter, const attempt& attempt) {
  or_without_memory([&] { on_attempt(waiter, attempt); });
}

void waiting_line::on_attempt(acquisition& waiter, const attempt& attempt) {
  HOLDFAST_ASSERT(step_ == step::trying && &waiter == &first());
  step_ = step::idle;
  const auto& reply = attempt.reply;
  count_incentive(attempt);
  if (attempt.answered) backoff_delay_ = {};
  // Some of several primaries may have granted it.
  const bool in_part = waiter.keys->of.voted && (reply.failed || reply.value.type != acquire_answer::kind::acquired);
  if (in_part) abandon_field(waiter, attempt.may_have_run);
  if (reply.failed) {
    if (!attempt.answered) last_failure_ = reply.failed;  // no news: the connection has told
    if (!in_part && reply.failed->may_have_run) ++waiter.seat.unanswered;
    if (waiter.seat.unanswered >= most_unanswered && !attempt.answered && !waiter.asks_once()) return back_off(waiter);
    return on_failed(waiter, *reply.failed);
  }
  const auto now = env_.now();
  known_held_ = now;
  last_failure_.reset();
  switch (reply.value.type) {
    case acquire_answer::kind::acquired:
      return waiter.request.asked.min_replicas > 0 ? wait_for_replicas(waiter, attempt)
                                                   : on_acquired(waiter, attempt, now);
    case acquire_answer::kind::busy: return on_busy(waiter, attempt, now);
    case acquire_answer::kind::busy_without_ttl:
      return finish(waiter, {errc::corrupt_lock, "its key has no TTL, so it would never end", nullptr});
  }
}

void waiting_line::count_incentive(const attempt& attempt) {
  const auto why = std::exchange(incentive_, incentive::none);
  if (why == incentive::none || attempt.reply.failed) return;
  using kind = measurement_kind;
  const bool had = attempt.reply.value.type == acquire_answer::kind::acquired;
  env_.count(why == incentive::poll ? kind::polled : had ? kind::woken : kind::woken_in_vain, *keys_);
}

// Whoever leaves meanwhile gives its field back.
void waiting_line::wait_for_replicas(acquisition& waiter, const attempt& attempt) {
  step_ = step::trying;
  waiter.seat.granted = true;
  waiter.seat.unanswered = 1;
  const auto& asked = waiter.request.asked;
  auto then = [id = weak_from_this(), caller = std::weak_ptr(waiter.seat.kept), field = waiter.seat.field,
               attempt](const std::optional<failure>& too_few) {
    const auto line = id.lock();
    const auto still = caller.lock();
    if (line && still && still->seat.granted && still->seat.field == field)
      line->or_without_memory([&] { line->on_replicas(*still, attempt, too_few); });
  };
  try {
    env_.when_replicated(keys_->lock, asked.min_replicas, attempt.server,
                         valid_until(attempt.sent, asked.ttl, env_.settings.drift), std::move(then));
  } catch (...) {
    step_ = step::idle;
    throw;
  }
}

void waiting_line::on_replicas(acquisition& waiter, const attempt& attempt, const std::optional<failure>& too_few) {
  HOLDFAST_ASSERT(step_ == step::trying && &waiter == &first());
  step_ = step::idle;
  waiter.seat.granted = false;
  if (!too_few) return on_acquired(waiter, attempt, env_.now());
  abandon_field(waiter);
  env_.report({.kind = event_kind::not_replicated,
               .name = keys_->name,
               .reason = too_few->code,
               .detail = too_few->detail,
               .owner = waiter.request.owner,
               .ttl = waiter.request.asked.ttl});
  on_failed(waiter, *too_few);
}

void waiting_line::on_acquired(acquisition& waiter, const attempt& attempt, time_point now) {
  const auto ttl = waiter.request.asked.ttl;
  if (now >= valid_until(attempt.sent, ttl, env_.settings.drift) - min_validity(ttl)) {
    abandon_field(waiter);
    return on_failed(waiter, {errc::unreachable, "the grant came too late to be of use"});
  }
  wake_ups_.granted();
  polled_ = {};
  granted_in_part_ = 0;
  waiter.seat.unanswered = 1;  // where there is no memory for its hold, it is given back
  auto record = host_.granted(waiter, {waiter.seat.field, attempt.reply.value.token, attempt.sent, now, attempt.yes,
                                       attempt.may_have_run, attempt.reply.value.spare_tokens});
  if (waiter.keys->of.voted) waiter.got = record->of->on;
  waiter.seat.unanswered = 0;
  waiter.seat.field.clear();  // the hold's from now on
  finish(waiter, {{}, {}, std::move(record)});
}

const acquisition* waiting_line::successor() const noexcept {
  if (waiters_.empty() || step_ == step::trying) return nullptr;
  const auto& waiter = *waiters_.front().kept;
  return waiter.request.whole || waiter.asks_once() ? nullptr : &waiter;
}

void waiting_line::inherited(std::shared_ptr<lease_record> record) {
  known_held_ = env_.now();
  last_failure_.reset();
  wake_ups_.granted();
  finish(first(), {{}, {}, std::move(record)});
}

// What it was granted, or may still be, is given back; the next attempt has a field of its own.
void waiting_line::abandon_field(acquisition& waiter, primary_set at) {
  HOLDFAST_ASSERT(!waiter.seat.field.empty());
  waiter.seat.unanswered = 0;
  waiter.seat.granted = false;
  const auto field = std::exchange(waiter.seat.field, {});
  if (at == nowhere) return;
  const auto tried = [id = weak_from_this()] {
    if (const auto line = id.lock()) line->on_tried();
  };
  ++pending_giveback_;
  try {
    host_.give_back(field, waiter.request.asked.ttl, tried, at);
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

void waiting_line::back_off(acquisition& waiter) {
  backoff_delay_ = std::clamp(2 * backoff_delay_, least_backoff_delay, longest_backoff_delay);
  step_ = step::blocked_on_release;
  try {
    abandon_field(waiter);
  } catch (...) {
    step_ = step::idle;
    throw;
  }
}

// Barred: what others give back in their turn says nothing. The answers that a stopped process has found in its sockets
// seem to have taken as long as it was stopped.
void waiting_line::park_divided(acquisition& waiter, nanoseconds slowest) {
  ++waiter.seat.splits;
  park_for(env_.random.up_to(std::min(2 * slowest, longest_backoff_delay)), step::blocked_on_release);
}

void waiting_line::on_busy(acquisition& waiter, const attempt& attempt, time_point now) {
  const auto& answer = attempt.reply.value;
  const auto holder_ttl = answer.holder_ttl;
  waiter.backoff.reset();
  if (!holder_ttl && subscription_) return try_now();  // no acknowledgement comes, after which it would
  if (holder_ttl) wake_ups_.found_busy(attempt.sent, now, *holder_ttl);
  const auto again_after = answer.split ? nanoseconds::max() : host_.found_busy();
  if (may_reenter(waiter)) return leave_to_reenter(waiter);
  if (waiter.asks_once()) return finish(waiter, {});
  granted_in_part_ = answer.split ? attempt.yes : 0;
  if (answer.split && waiter.seat.splits < quick_rounds) return park_divided(waiter, *answer.split);
  if (!answer.split) waiter.seat.splits = 0;
  const bool again = subscription_ && woken_;
  // What was published before the acknowledgement is missed: on_subscribed() tries again.
  subscribe();
  const auto ttl_left = holder_ttl ? nanoseconds(*holder_ttl) : nanoseconds::max();
  park_while_held(ttl_left, attempt.sent, std::min(next_poll(), again_after));
  if (again) wake();
}

// Its owner was granted the lock by another way: as one of several, or as all of them.
bool waiting_line::may_reenter(const acquisition& waiter) const {
  return waiter.request.bound && !waiter.request.one_of_several && host_.held_by(waiter.request.owner);
}

// The line may be gone by then; its host has a hold.
void waiting_line::leave_to_reenter(acquisition& waiter) {
  auto& host = host_;
  const auto caller = waiter.seat.kept;
  remove(waiter);
  host.reenter(caller);
}

// The connection of a try_lock() has ended before its time. The second copy finds its own field, if the first one has
// run.
bool waiting_line::may_ask_again(const acquisition& waiter, const failure& why) const {
  const bool lost = why.may_have_run && why.mends_itself() && waiter.seat.unanswered == 1;
  return lost && waiter.asks_once() && !waiter.request.whole && waiter.time_left() > nanoseconds::zero();
}

void waiting_line::on_failed(acquisition& waiter, const failure& why) {
  const auto before = std::exchange(last_failure_, why);
  const bool news = !before || before->code != why.code;
  if (may_ask_again(waiter, why)) return try_now();
  if (!why.mends_itself() || waiter.asks_once()) return finish(waiter, {why.code, why.detail, nullptr});
  // The connection tells of its own outages; of a server that answers and will not write nobody else does.
  if (news && why.code == errc::server_refused)
    env_.report({.kind = event_kind::outage, .name = keys_->name, .reason = why.code, .detail = why.detail});
  const auto pause = waiter.backoff.next(env_.random);
  const bool blocked_on_release = waiter.seat.unanswered == 0 && backoff_delay_ > nanoseconds::zero();
  park_for(std::max(pause, backoff_delay_), blocked_on_release ? step::blocked_on_release : step::parked);
}

// Who has a deadline asks once before it, all the same.
nanoseconds waiting_line::rest() const {
  auto until = host_.cool_down_until();
  const auto& waiter = *waiters_.front().kept;
  if (until <= waiter.since()) return {};
  if (waiter.request.deadline != time_point::max())
    until = std::min(until, waiter.since() + (waiter.request.deadline - waiter.since()) / 2);
  return until - env_.now();
}

// A lock may become free without a message.
nanoseconds waiting_line::longest_park() {
  const nanoseconds cap = env_.settings.poll_cap;
  return cap - env_.random.up_to(cap / 10);
}

// In vain, if he who holds it tells of its release.
nanoseconds waiting_line::next_poll() {
  const auto& polls = keys_->of.polls;
  if (polls.longest == milliseconds::zero()) return nanoseconds::max();
  const auto pause = std::clamp<nanoseconds>(polled_, polls.first, polls.longest);
  return pause - env_.random.up_to(pause / 10);
}

// What was so when Redis was asked: a process that was stopped since has slept through a part of it.
void waiting_line::park_while_held(nanoseconds holder_ttl, time_point asked, nanoseconds poll) {
  const auto capped = longest_park();
  // Redis keeps a key through the millisecond in which it ends.
  const nanoseconds least = milliseconds(1) + env_.random.up_to(milliseconds(1));
  const auto pause = holder_ttl < capped ? holder_ttl + least : capped;
  park_for(std::min(std::max(pause - (env_.now() - asked), least), poll));
}

void waiting_line::park_for(nanoseconds pause, step step) {
  HOLDFAST_ASSERT(!waiters_.empty());
  step_ = step::idle;  // until there is a timer
  first().stand_in_line();
  park_.start(env_.now() + pause, [this] {
    if (parked_while_held() && !host_.held_here()) {
      polled_ = 2 * std::clamp<nanoseconds>(polled_, keys_->of.polls.first, keys_->of.polls.longest);
      incentive_ = incentive::poll;
    }
    if (step_ == step::blocked_on_release) step_ = step::idle;
    advance();
  });
  step_ = step;
}

// Only Redis or a hold of this client says busy. A server that has answered others meanwhile had no time for this
// attempt: the answer is empty. A silent server may be gone, and the state of the lock is unknown.
void waiting_line::time_out(acquisition& waiter) {
  or_without_memory([&] { on_time_out(waiter); });
}

void waiting_line::on_time_out(acquisition& waiter) {
  if (waiter.seat.granted) return finish(waiter, {errc::not_replicated, "not in time", nullptr});
  if (waiter.asks_once()) return try_now();  // the other half of its time is for the answer
  const bool held = parked_while_held() || host_.held_here();
  if (held || (known_held_ && *known_held_ >= waiter.since())) return finish(waiter, {});
  if (last_failure_ && last_failure_->code != errc::unreachable)
    return finish(waiter, {last_failure_->code, last_failure_->detail, nullptr});
  const bool asks = step_ == step::trying && &waiter == &first();
  const auto silence = asks ? waiter.silence_of_attempt() : env_.servers.silence_since(keys_->lock, waiter.since());
  finish(waiter, silence ? lock_answer{silence->code, silence->detail, nullptr} : lock_answer());
}

// Not after a failure, nor in a rest: these say nothing of the lock.
bool waiting_line::parked_while_held() const { return step_ == step::parked && !last_failure_ && !resting_; }

std::shared_ptr<acquisition> waiting_line::take_out(acquisition& waiter) {
  waiters_.erase(waiters_.iterator_to(waiter.seat));
  if (waiter.request.bound) bound_.erase({waiter.request.owner, waiter.seat.number});
  return std::move(waiter.seat.kept);
}

void waiting_line::remove(acquisition& waiter, bool served) {
  const bool was_first = &waiter == &first();
  const auto keep = take_out(waiter);
  auto sent_to = waiter.seat.unanswered > 0 ? everywhere : nowhere;
  if (was_first && step_ == step::trying) {
    step_ = step::idle;
    sent_to |= waiter.withdraw_attempt();  // what was never written needs no compensation
  }
  each_step all;  // if there is no memory to give a field back, the others still go on
  if (sent_to != nowhere && !waiter.seat.field.empty()) all([&] { abandon_field(waiter, sent_to); });
  HOLDFAST_ASSERT(sent_to == nowhere || waiter.seat.field.empty());
  if (waiters_.empty()) {
    lingers_ = (served || waiter.asks_once()) && subscription_ && host_.may_linger();
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
void waiting_line::finish(acquisition& waiter, lock_answer&& answer) {
  const auto keep = waiter.seat.kept;
  const auto event_for = [&waiter](const lock_answer& reply) {
    auto event =
        reply.record
            ? event_of(event_kind::acquired, *reply.record->of, reply.record->of->granted_at)
            : hold_event{
                  {.kind = end_of_call(reply.error), .name = waiter.keys->name, .lock_kind = waiter.keys->of.name}};
    event.content.waiters = waiter.seat.ahead;
    return event;
  };
  try {
    remove(waiter, answer.record != nullptr);
  } catch (...) {
    waiter.answer(std::move(answer), event_for);
    throw;
  }
  waiter.answer(std::move(answer), event_for);
}

}  // namespace holdfast::detail
