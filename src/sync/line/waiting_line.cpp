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

/// Each copy of an acquire may take the lock for a waiter that cannot learn of it. After this many the waiter pauses.
constexpr unsigned most_unanswered = 2;
/// Callers that share the primaries' votes try again after random pauses, so that one of them is first. After this many
/// rounds the lock has a holder, at a part of the primaries.
constexpr unsigned quick_rounds = 10;
constexpr nanoseconds longest_linger = std::chrono::seconds(1);
constexpr nanoseconds least_backoff_delay = milliseconds(20), longest_backoff_delay = std::chrono::seconds(1);
/// The message of release.lua on the sharded channel if it publishes on both. Redisson reads the number 0.
constexpr std::string_view copy_on_sharded_channel = "00";

}  // namespace

// Decision: a waiter gives its field back after two unanswered attempts. Each copy of an acquire may take the lock for
// a whole TTL, for a waiter that cannot learn of it. A pause begins when Redis may have received the release. It
// doubles up to a second, and only an answer resets it while the line has waiters.
//
// Decision: a line sends no acquire until the first copy of an earlier attempt's release is answered or cut off. Until
// then the line is blocked, for a try_lock() during half of its time at most. Without this rule the pause passes while
// a connection is made, and a loop of short try_lock_for() sends one acquire after the other. A healthy client found
// the lock free for 15 microseconds in 10 s. The price is one round trip after a cancelled attempt.
//
// Decision: the first waiter sends nothing while its own client holds the lock. The hold's end wakes it, so a request
// costs a command and changes nothing. It subscribes all the same, because a force-unlock by another client frees the
// lock. A try_lock() asks, because it waits for no hold.
//
// Decision: callers that divide several primaries among them wait random times, which no message interrupts: up to
// twice the slowest answer, at most a second. After ten rounds the lock has a holder, at a part of the primaries. Then
// the caller waits as for any held lock.
//
// Silence is no contention, see topology::silence_since(). Several primaries have answered if a majority has, to this
// attempt or to others since.

// The states of a line, when none of its calls is running. Inside a call a line is idle between two steps.
//
//   step     waiters  park_ runs  pending_giveback_  ends by
//   idle     none     no          0         join(); only a new line is so
//   idle     none     yes         0         join(), stop_lingering() or the alarm: then the line is destroyed
//   trying   some     no          any       an answer of Redis or of replicas, settled(), or the first waiter leaves
//   parked   some     yes         any       the alarm, wake(), or the subscription fails
//   blocked  any      no          > 0       on_tried(), or a first try_lock() at half of its time
//   blocked  some     yes         any       the alarm, or a first try_lock() at half of its time
//
// A line that is parked or blocked stays so for its next waiter when the first one leaves. When the last one leaves, a
// line with a release under way is blocked, without an alarm. Any other line lingers or is destroyed. A parked line
// that is woken while a release is under way is blocked as well. A line with waiters may be stuck(), for lack of
// memory: it is idle, or it is parked without an alarm. A blocked line is stuck if it has neither an alarm nor a
// release under way.
//
// pending_giveback_ > 0 while trying: a try_lock() at half of its time, or an attempt that is repeated at once.
//
//   flag              idle      trying    parked    blocked   moved by
//   woken_            old       yes       old       old       set by wake(), cleared by try_now()
//   cooling_down_     old       no        yes       old       set by go_on() while others have their turns; cleared by
//                                                             try_now(), or while this client holds
//   lingers_          yes       no        no        no one    set when the last waiter leaves; cleared by join(),
//                                                             stop_lingering() or the end of the line
//   incentive_        old       yes       old       old       set by wake() or the alarm, cleared by on_attempt()
//   subscription_     lingers   yes       yes       yes       set by subscribe(); cleared with the last waiter, unless
//                                                             the line lingers, and when the server refuses it
//   listens_          as subscription_; without it the flag is old    set by on_subscribed()
//   first().granted   -         yes       no        no        from a grant until replicas have it, or the field is
//                                                             given back
//   backoff_delay_    yes       yes       yes       yes       above 0: doubled by back_off(), cleared by an answer
//   last_failure_     yes       yes       yes       yes       set by a failure; cleared by an answer about the lock, or
//                                                             by inherited()
//   known_held_       yes       yes       yes       yes       set by an answer about the lock, by found_taken, by the
//                                                             end of "parked while held" and by inherited()
//   polled_           yes       yes       yes       yes       doubled by the alarm of "parked while held"; cleared by a
//                                                             grant of Redis
//   granted_in_part_  yes       yes       yes       yes       set by a divided vote; cleared by a grant, or by busy
//
// yes: possible. old: left from an earlier step. no one: only without waiters, and then the line lingers next.
// "Parked while held" is derived: parked, with neither last_failure_ nor cooling_down_.

waiting_line::waiting_line(environment& env, owner_fields& fields, line_host& host, shared_keys keys)
    : env_(env), fields_(fields), host_(host), keys_(std::move(keys)), park_(env.alarms) {}

// The engine ends. A cancellation slot may keep a waiter alive longer, so the waiter must forget its caller now.
waiting_line::~waiting_line() {
  while (!waiters_.empty()) take_out(first())->forget_caller();
}

void waiting_line::join(std::shared_ptr<acquisition> waiter) {
  HOLDFAST_ASSERT(!waiters_.empty() || step_ == step::idle || step_ == step::blocked_on_release);
  // The alarm would end the subscription that the new waiter needs.
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
  // Another waiter of this client is first, so the lock is taken or about to be. A try_lock() need not ask.
  if (once && waiter.seat.ahead > 0) return finish(waiter, {});
  // A first attempt in an outage is a wait, too. Without an observer waits are not counted, and the look-up is saved.
  const bool in_outage = env_.settings.observer && env_.servers.in_outage(keys_->lock);
  if (waiter.seat.ahead > 0 || in_outage) waiter.count_as_waiting();
  // The other half of its time is for the answer.
  if (once && step_ == step::blocked_on_release) waiter.wake_at(env_.now() + waiter.time_left() / 2);
  if (waiter.seat.ahead > 0) return;
  if (!waiter.request.found_taken || step_ == step::blocked_on_release) return go_on();
  // Redis has just said busy, for several names at once. The acknowledgement of the subscription brings the next try,
  // so no release between the two is missed.
  known_held_ = env_.now();
  subscribe();
  park_while_held(nanoseconds::max(), env_.now(), next_poll());
}

// join() throws: its caller learns of the lack of memory by that, and has nothing that it could cancel.
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
  // The attempt in flight may have been executed before the release that this message reports.
  if (step_ == step::trying) woken_ = true;
  if (step_ != step::parked) return;
  // A release of another client has brought the end of the cool-down nearer.
  if (cooling_down_ && cool_down_left() > nanoseconds::zero())
    return or_without_memory([this] { park_for(cool_down_left()); });
  if (wake_ups_.next() <= env_.now()) {
    wake_ups_.spend(env_.now());
    incentive_ = why;
    advance();
  } else if (park_.due() > wake_ups_.next()) {
    or_without_memory([&] { park_.start(wake_ups_.next(), [this, why] { wake(why); }); });
  }
}

// The first waiter stays: its attempt brought the grant, and finish() answers it.
std::shared_ptr<acquisition> waiting_line::extract(owner_id owner) {
  if (waiters_.empty()) return nullptr;
  for (auto seat = bound_.upper_bound({owner, waiters_.front().number});
       seat != bound_.end() && seat->first.first == owner; ++seat)
    if (!seat->second->request.one_of_several) return take_out(*seat->second);
  return nullptr;
}

// The last of them first: when the first leaves, the next one would send a useless attempt.
void waiting_line::fail_all_of(owner_id owner, error_code error, const char* detail) {
  std::vector<std::shared_ptr<acquisition>> leaving;
  for (auto seat = bound_.upper_bound({owner, 0}); seat != bound_.end() && seat->first.first == owner; ++seat)
    leaving.push_back(seat->second->seat.kept);
  each_step all;
  for (auto seat = leaving.rbegin(); seat != leaving.rend(); ++seat)
    all([&] { leave(**seat, {error, detail, nullptr}); });
  all.rethrow();
}

// A release may have been published between the busy answer and this acknowledgement, so one more try must follow.
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

// The sender is most often a caller that gave an attempt back. No turn of another client has ended.
void waiting_line::on_rumour(std::string_view) { heard_that_it_is_free(false); }

void waiting_line::heard_that_it_is_free(bool by_ourselves) {
  if (!waiters_.empty()) first().seat.splits = 0;
  if (!host_.held_here()) return wake();
  // Most often the own notification. Any other message may be a force-unlock of the lock that this client holds.
  if (!by_ourselves) host_.doubt_hold_here();
}

void waiting_line::on_subscribe_failed(error_code error, const std::string& detail) {
  subscription_.reset();
  // The refusal may be an ACL's. A waiter must not sleep until its poll cap for messages that never come.
  if (step_ == step::parked) step_ = step::idle;
  or_without_memory([&] {
    if (!waiters_.empty()) on_failed(first(), {static_cast<errc>(error.value()), detail});
  });
}

// The first waiter, perhaps a new one, takes its next step. Without memory it is answered unreachable, and the next
// waiter becomes the first. No waiter may wait for an attempt that was not begun.
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
  // Redis would execute that release and the next acquire together, and other clients would never find the lock free.
  if (pending_giveback_ > 0) {
    step_ = step::blocked_on_release;
    return park_.stop();
  }
  if (waiters_.empty()) {
    step_ = step::idle;
    park_.stop();
    const auto linger = [this] { park_.start(env_.now() + longest_linger, [this] { stop_lingering(); }); };
    // The end of the hold or of the cool-down stops the lingering. The alarm is for holds that last longer.
    if (lingers_ && if_memory(linger)) return;
    lingers_ = false;
    subscription_.reset();
    return host_.line_empty();
  }
  if (may_reenter(first())) return leave_to_reenter(first());
  // A try_lock() promises the state of the lock in Redis, so it does not wait for the cool-down.
  if (first().asks_once()) return try_now();
  if (!host_.held_here()) {
    const auto pause = cool_down_left();
    if (pause <= nanoseconds::zero()) return try_now();
    // Each release of another client brings the end of the cool-down nearer.
    subscribe();
    cooling_down_ = true;
    return park_for(pause);
  }
  cooling_down_ = false;
  // The hold's end wakes the line. The subscription is for a force-unlock by another client.
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
  // on_time_out() takes this for contention if the attempt finds no answer.
  if (parked_while_held()) known_held_ = env_.now();
  step_ = step::trying;
  woken_ = cooling_down_ = false;
  park_.stop();
  const auto& request = waiter.request;
  const auto& row = waiter.keys->of;
  const bool once = waiter.asks_once();
  const bool never_asked = !once && !request.found_taken && !request.whole && waiter.seat.field.empty();
  // The cheaper first command cannot recognise its own field. A field that was sent before needs the script.
  waiter.seat.first_try = never_asked && row.first_acquire.make;
  // A repeated attempt keeps its field: if the first copy has run, Redis confirms that grant.
  if (waiter.seat.field.empty()) waiter.seat.field = fields_.next();
  // The command's timeout is the rest of the caller's time.
  if (once) waiter.stop_alarm();
  // A multi_acquisition sends one command for all its lines, and answers with settled().
  if (request.whole) return request.whole->part_is_first(request.part);
  try {
    send_attempt(waiter);
  } catch (...) {
    step_ = step::idle;
    throw;
  }
}

void waiting_line::send_attempt(acquisition& waiter) {
  const auto& request = waiter.request;
  const auto& row = waiter.keys->of;
  const bool once = waiter.asks_once();
  auto timeout = once ? waiter.time_left() : command_budget(env_.settings, request.asked.ttl);
  // A silent primary must not delay a vote that the others can decide.
  if (row.voted) timeout = std::min(timeout, vote_budget(env_.settings, request.asked.ttl));
  const auto& step = waiter.seat.first_try ? row.first_acquire : row.acquire;
  waiter.send(env_,
              step.make(*waiter.keys, request.asked.ttl, waiter.seat.field).with_token_ttl(env_.settings.token_ttl),
              {.timeout = timeout, .rank = once ? urgency::refusable : urgency::awaited, .waits_for_reply = !once});
}

void waiting_line::attempt_answered(acquisition& waiter, const outcome& outcome) {
  // A waiter without a seat has left meanwhile, and the line went on by itself.
  if (!if_memory([&] { on_answer(waiter, outcome); }) && waiter.seat.kept) answer_stuck();
}

void waiting_line::on_answer(acquisition& waiter, const outcome& outcome) {
  HOLDFAST_ASSERT(step_ == step::trying && &waiter == &first());
  auto reply = (waiter.seat.first_try ? waiter.keys->of.first_acquire : waiter.keys->of.acquire).read(outcome);
  const bool refused = !outcome.error && outcome.reply.is_error();
  if (!waiter.seat.first_try || !refused)
    return on_attempt(
        waiter, {std::move(reply), !outcome.error, outcome.sent, outcome.yes, outcome.may_have_run, outcome.server});
  // A server that accepts no writes refuses SET without a look at the key. The script can still find the lock held.
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
  // A minority of primaries may have granted it. Those grants keep every other caller from a majority.
  const bool in_part = waiter.keys->of.voted && (reply.failed || reply.value.type != acquire_answer::kind::acquired);
  if (in_part) abandon_field(waiter, attempt.may_have_run);
  if (reply.failed) {
    // The connection reports its own outage, so on_failed() must not take this failure for news.
    if (!attempt.answered) last_failure_ = reply.failed;
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

// The grant counts as unanswered until then. A waiter that leaves meanwhile therefore gives its field back.
void waiting_line::wait_for_replicas(acquisition& waiter, const attempt& attempt) {
  step_ = step::trying;
  waiter.seat.granted = true;
  waiter.seat.unanswered = 1;
  const auto& asked = waiter.request.asked;
  // The field identifies the grant: the waiter may have given it back, and have asked again with another one.
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
  // A failover would forget this grant, so it is given back. The next attempt has another field.
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
  // The validity counts from the time of sending, so a slow answer can bring a grant that is nearly over.
  if (now >= valid_until(attempt.sent, ttl, env_.settings.drift) - min_validity(ttl)) {
    abandon_field(waiter);
    return on_failed(waiter, {errc::unreachable, "the grant came too late to be of use"});
  }
  wake_ups_.granted();
  polled_ = {};
  granted_in_part_ = 0;
  // granted() may throw for lack of memory. Then remove() gives the field back, as after an unanswered attempt.
  waiter.seat.unanswered = 1;
  auto record = host_.granted(waiter, {waiter.seat.field, attempt.reply.value.token, attempt.sent, now, attempt.yes,
                                       attempt.may_have_run, attempt.reply.value.spare_tokens});
  if (waiter.keys->of.voted) waiter.got = record->of->on;
  // The field belongs to the hold from here on, so the line must not release it.
  waiter.seat.unanswered = 0;
  waiter.seat.field.clear();
  finish(waiter, {{}, {}, std::move(record)});
}

// An attempt in flight may be granted as well: the waiter would have two grants.
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

// Releases the field, whether it was granted or may still be. A late copy of the acquire must not match a new attempt,
// so the next one has a field of its own.
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
  // A running alarm means that the pause began already.
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

// The line is blocked, because messages about votes that other callers give back say nothing about the lock. The pause
// has a maximum: a suspended process finds old answers in its sockets, so the slowest one seems to have taken minutes.
void waiting_line::park_divided(acquisition& waiter, nanoseconds slowest) {
  ++waiter.seat.splits;
  park_for(env_.random.up_to(std::min(2 * slowest, longest_backoff_delay)), step::blocked_on_release);
}

void waiting_line::on_busy(acquisition& waiter, const attempt& attempt, time_point now) {
  const auto& answer = attempt.reply.value;
  const auto holder_ttl = answer.holder_ttl;
  waiter.backoff.reset();
  // A first try learns no TTL, so the script must follow. It usually follows the acknowledgement of a new subscription.
  // An existing subscription brings none.
  if (!holder_ttl && subscription_) return try_now();
  if (holder_ttl) wake_ups_.found_busy(attempt.sent, now, *holder_ttl);
  const auto again_after = answer.split ? nanoseconds::max() : host_.found_busy();
  if (may_reenter(waiter)) return leave_to_reenter(waiter);
  if (waiter.asks_once()) return finish(waiter, {});
  granted_in_part_ = answer.split ? attempt.yes : 0;
  if (answer.split && waiter.seat.splits < quick_rounds) return park_divided(waiter, *answer.split);
  if (!answer.split) waiter.seat.splits = 0;
  // A message during the attempt may be about the release of the holder that the answer names.
  const bool again = subscription_ && woken_;
  // Messages before the acknowledgement are missed, so on_subscribed() tries again.
  subscribe();
  const auto ttl_left = holder_ttl ? nanoseconds(*holder_ttl) : nanoseconds::max();
  park_while_held(ttl_left, attempt.sent, std::min(next_poll(), again_after));
  if (again) wake();
}

// A call for several locks has brought the lock to the waiter's own owner. The line would wait for that hold's end, and
// its owner perhaps for this call.
bool waiting_line::may_reenter(const acquisition& waiter) const {
  return waiter.request.bound && !waiter.request.one_of_several && host_.held_by(waiter.request.owner);
}

// remove() may destroy the line. The host lives on, because it has a hold.
void waiting_line::leave_to_reenter(acquisition& waiter) {
  auto& host = host_;
  const auto caller = waiter.seat.kept;
  remove(waiter);
  host.reenter(caller);
}

// The connection of a try_lock() has ended before its timeout. The second copy is safe: if the first has run, Redis
// finds the same field.
bool waiting_line::may_ask_again(const acquisition& waiter, const failure& why) const {
  const bool lost = why.may_have_run && why.mends_itself() && waiter.seat.unanswered == 1;
  return lost && waiter.asks_once() && !waiter.request.whole && waiter.time_left() > nanoseconds::zero();
}

void waiting_line::on_failed(acquisition& waiter, const failure& why) {
  const auto before = std::exchange(last_failure_, why);
  const bool news = !before || before->code != why.code;
  if (may_ask_again(waiter, why)) return try_now();
  if (!why.mends_itself() || waiter.asks_once()) return finish(waiter, {why.code, why.detail, nullptr});
  // Connections report their own outages. A server that answers but refuses to write is reported here alone.
  if (news && why.code == errc::server_refused)
    env_.report({.kind = event_kind::outage, .name = keys_->name, .reason = why.code, .detail = why.detail});
  const auto pause = waiter.backoff.next(env_.random);
  const bool blocked_on_release = waiter.seat.unanswered == 0 && backoff_delay_ > nanoseconds::zero();
  park_for(std::max(pause, backoff_delay_), blocked_on_release ? step::blocked_on_release : step::parked);
}

// A waiter with a deadline asks within half of its time: a cool-down alone must not fail it. A waiter that came after
// the cool-down's end has nothing to wait for.
nanoseconds waiting_line::cool_down_left() const {
  auto until = host_.cool_down_until();
  const auto& waiter = *waiters_.front().kept;
  if (until <= waiter.since()) return {};
  if (waiter.request.deadline != time_point::max())
    until = std::min(until, waiter.since() + (waiter.request.deadline - waiter.since()) / 2);
  return until - env_.now();
}

// A lock may become free without a message: a key expires, or the message is lost. Many clients must not poll together.
nanoseconds waiting_line::longest_park() {
  const nanoseconds cap = env_.settings.poll_cap;
  return cap - env_.random.up_to(cap / 10);
}

// Other clients may release a lock of this kind without a message. The pause doubles, because most holders do publish.
nanoseconds waiting_line::next_poll() {
  const auto& polls = keys_->of.polls;
  if (polls.longest == milliseconds::zero()) return nanoseconds::max();
  const auto pause = std::clamp<nanoseconds>(polled_, polls.first, polls.longest);
  return pause - env_.random.up_to(pause / 10);
}

// The TTL counts from when the command was sent. If the process was suspended since, part of it is gone.
void waiting_line::park_while_held(nanoseconds holder_ttl, time_point asked, nanoseconds poll) {
  const auto capped = longest_park();
  // Redis keeps a key through the millisecond in which it ends.
  const nanoseconds least = milliseconds(1) + env_.random.up_to(milliseconds(1));
  const auto pause = holder_ttl < capped ? holder_ttl + least : capped;
  park_for(std::min(std::max(pause - (env_.now() - asked), least), poll));
}

void waiting_line::park_for(nanoseconds pause, step step) {
  HOLDFAST_ASSERT(!waiters_.empty());
  // The timer needs memory. Until it runs, the line must look stuck, so that its first waiter is answered.
  step_ = step::idle;
  first().count_as_waiting();
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

// Only Redis or a hold of this client can prove contention. Without such a proof the result depends on whether the
// server was silent.
void waiting_line::time_out(acquisition& waiter) {
  or_without_memory([&] { on_time_out(waiter); });
}

void waiting_line::on_time_out(acquisition& waiter) {
  if (waiter.seat.granted) return finish(waiter, {errc::not_replicated, "not in time", nullptr});
  // The line is blocked, and half of the time of a try_lock() is over. The other half is for the answer.
  if (waiter.asks_once()) return try_now();
  const bool held = parked_while_held() || host_.held_here();
  if (held || (known_held_ && *known_held_ >= waiter.since())) return finish(waiter, {});
  if (last_failure_ && last_failure_->code != errc::unreachable)
    return finish(waiter, {last_failure_->code, last_failure_->detail, nullptr});
  const bool asks = step_ == step::trying && &waiter == &first();
  const auto silence = asks ? waiter.silence_of_attempt() : env_.servers.silence_since(keys_->lock, waiter.since());
  finish(waiter, silence ? lock_answer{silence->code, silence->detail, nullptr} : lock_answer());
}

// A failure and a cool-down say nothing about the lock.
bool waiting_line::parked_while_held() const { return step_ == step::parked && !last_failure_ && !cooling_down_; }

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
    // A command that was never written needs no release.
    sent_to |= waiter.withdraw_attempt();
  }
  // Without memory for the release the waiters behind must still go on.
  each_step all;
  if (sent_to != nowhere && !waiter.seat.field.empty()) all([&] { abandon_field(waiter, sent_to); });
  HOLDFAST_ASSERT(sent_to == nowhere || waiter.seat.field.empty());
  if (waiters_.empty()) {
    lingers_ = (served || waiter.asks_once()) && subscription_ && host_.may_linger();
    if (!lingers_) subscription_.reset();
    // The new first waiter may have another deadline, and so another end of the cool-down.
  } else if (was_first && step_ == step::parked && cooling_down_) {
    all([this] { park_for(cool_down_left()); });
  }
  // A parked or blocked line stays so for its new first waiter: the reason of the wait is the same.
  if (was_first && (step_ == step::idle || waiters_.empty())) advance();
  all.rethrow();
}

// The caller is answered last, so the line goes on even without memory for the answer. remove() may destroy the line.
// If the line finds no memory to go on, the caller is still answered, because its hold exists.
void waiting_line::finish(acquisition& waiter, lock_answer&& answer) {
  const auto keep = waiter.seat.kept;
  const auto event_for = [&waiter](const lock_answer& result) {
    auto event =
        result.record
            ? event_of(event_kind::acquired, *result.record->of, result.record->of->granted_at)
            : hold_event{
                  {.kind = end_of_call(result.error), .name = waiter.keys->name, .lock_kind = waiter.keys->of.name}};
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
