// SPDX-License-Identifier: BSL-1.0
#include "sync/line/line_rules.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace holdfast::detail {

namespace {

/// Each copy of an acquire may take the lock for a waiter that cannot learn of it. After this many the waiter pauses.
constexpr unsigned most_unanswered = 2;
/// Callers that share the primaries' votes try again after random pauses, so that one of them is first. After this many
/// rounds the lock has a holder, at a part of the primaries.
constexpr unsigned quick_rounds = 10;
const failure without_ttl{errc::corrupt_lock, "its key has no TTL, so it would never end"};
const failure not_replicated_in_time{errc::not_replicated, "not in time"};
const failure granted_too_late{errc::unreachable, "the grant came too late to be of use"};
constexpr nanoseconds longest_linger = std::chrono::seconds(1);
constexpr nanoseconds linger_after_release = milliseconds(100);
constexpr nanoseconds least_backoff_delay = milliseconds(20), longest_backoff_delay = std::chrono::seconds(1);

}  // namespace

// Decision: a waiter gives its field back after two unanswered attempts. Each copy of an acquire may take the lock for
// a whole TTL, for a waiter that cannot learn of it. A pause begins when Redis may have received the release. It
// doubles up to a second, and only an answer resets it while the line has waiters.
//
// Decision: a line sends no acquire until the first copy of an earlier attempt's release is answered or cut off. Until
// then the line is blocked, for a try_lock() during half of its time at most. Written together, a release and the next
// acquire would never leave the lock free for other clients. Without this rule the pause passes while a connection is
// made, and a loop of short try_lock_for() sends one acquire after the other. A healthy client found the lock free for
// 15 microseconds in 10 s. The price is one round trip after a cancelled attempt.
//
// Decision: the first waiter sends nothing while its own client holds the lock. The hold's end wakes it, so a request
// costs a command and changes nothing. It listens all the same, because a force-unlock by another client frees the
// lock. A try_lock() asks, because it waits for no hold.
//
// Decision: callers that divide several primaries among them wait random times, which no message interrupts: up to
// twice the slowest answer, and twice as long after each further round. Pauses that did not grow left each of two
// callers at a part of the primaries for half of its time. Of a hundred contests one or two lasted more than ten
// rounds. They grow up to the poll cap, because the lock may be free meanwhile; never beyond a second. After ten rounds
// the lock has a holder, at a part of the primaries. Then the caller waits as for any held lock.
//
// Decision: the grant to a part of a party is also the busy answer of the next waiter, which parks. A second question
// would find it busy. Two processes of eight tasks needed 1.01 scripts for each permit with it, and need 0.77 without.
//
// Decision: while the server pushes the next change of the key, polls are a net at the poll cap. Messages during an
// attempt do not count: a change after a tracked answer is pushed, and one before it is in the answer. Otherwise a
// release of ours would bring two attempts of each waiting client, one by the push and one by the message. Pushed
// changes share the wake budget with messages: anybody who may write the key could push as fast as he likes.
//
// Decision: of several primaries a push counts as a message of that primary, and the topology waits for a majority. A
// waiter beside a holder that lacks a primary gets and gives back the vote of that one. It would wake all the others by
// each of its attempts, and they would wake it.
//
// Silence is no contention, see topology::silence_since(). Several primaries have answered if a majority has, to this
// attempt or to others since.

// The states of a line, between two events. Inside a decision a line is idle between two steps.
//
//   state    step     waiters  alarm  giving_back_  ends by
//   new      idle     none     no     0             the first waiter
//   lingers  idle     none     yes    0             the first waiter; the alarm or stop_lingering(): then it is over
//   over     idle     none     no     0             the end of the line, or the first waiter
//   tries    trying   some     no     any           an answer of Redis or of replicas, or the first waiter leaves
//   parks    parked   some     yes    any           the alarm, a wake-up, a refused subscription
//   blocked  blocked  any      no     > 0           given_back(), or a first try_lock() at half of its time
//   pauses   blocked  some     yes    any           the alarm, or a first try_lock() at half of its time
//
// A line that found no memory is idle although it has waiters. The first of them leaves next.
//
// The actions of each event. "next" is: rest while a release blocks; else what the first waiter needs, one of send,
// park and reenter; without waiters linger (park) or rest. "x" cannot happen, and is asserted.
//
//   event             new   lingers  over  tries           parks             blocked             pauses
//   joined            next  next     next  x               x                 rest                x
//   woken             wait  wait     wait  wait [1]        wait, next [2]    wait                wait
//   heard             as woken; while this client holds: wait [9]
//   rumoured          as woken; while this client holds: wait
//   pushed            as woken; while this client holds, or of several primaries: wait
//   in_question       wait   wait     wait  wait [1]        wait, park [10]  wait                wait
//   called            as heard
//   released          as woken [9]
//   subscribed        x     wait     x     wait [1]        wait, next [2]    wait                wait
//   unsubscribed      x     wait     x     done            done              wait, done [3]      done
//   alarm             x     rest     x     x               next              x                   next
//   first_try_refused x     x        x     send            x                 x                   x
//   answered          x     x        x     next, confirm,  x                 x                   x
//                                          grant, done
//   replicated        x     x        x     grant, park,    x                 x                   x
//                                          done
//   given_back        x     x        x     wait            wait              wait, next [4]      wait
//   timed_out         x     x        x     done, silent    done, silent      done, silent,       done, silent,
//                                                                            send [5]            send [5]
//   left              x [6] x        x [6] wait, next [7]  wait, park, rest  wait, rest          wait, park, rest
//                                                          [8]                                   [8]
//   stop_lingering    x     rest     x     x               x                 rest [3]            x
//   shown [11]        wait  wait     wait  wait            wait, next,       wait                wait
//                                                          park, done
//   freed [11]        wait  park     wait  wait [1]        wait, next, park  wait                wait
//   places_left [11]  wait  wait     wait  wait            wait, next        wait                wait
//   rode_in_vain [11] x     x        x     next            x                 x                   x
//
//   [1] The attempt in flight may have run before the release: one more follows a busy answer.
//   [2] wait or park: the wake budget is spent, or the cool-down goes on.
//   [3] A blocked line without waiters has nobody to answer. It may linger when its release has ended.
//   [4] Other releases may be under way. After two unanswered attempts the pause begins now.
//   [5] Half of a try_lock()'s time is over. The other half is for the answer.
//   [6] Not asserted: the rules do not count the waiters.
//   [7] Only the departure of the first ends its attempt. Inside a decision the answer is "next", or park if the grant
//       of the first has told that too few permits are left for the next one.
//   [8] wait: the line stays parked or blocked for the next first waiter. park: that one has another deadline, and so
//       another end of the cool-down. The departure of the last waiter is followed by linger or rest.
//       next: the new first waiter reads where the other one would write, or the reverse; or it wants several permits.
//   [9] Of a kind with a queue: wait, or park for the pause in which readers come, if queue_place says so.
//   [10] The wake-up comes at the end of a short pause. wait: an earlier alarm stays.
//   [11] Of a kind with an order of all waiters. rides() turns a parked line into one that tries. There is no wake
//        budget. "next" is park while the place of a waiter that has left still stands.
//
//   flag              idle      trying    parked    blocked   moved by
//   woken_            old       yes       old       old       set by woken(), cleared by send()
//   heard_            old       yes       old       old       set by heard() and rumoured() while trying, cleared by
//                                                             send()
//   tracked_          old       no        yes       old       set by a busy answer that is tracked; cleared by send(),
//                                                             pushed() and in_question()
//   forgotten_        old       yes       old       old       set by in_question() while trying, and by pushed() of
//                                                             several primaries; cleared by send()
//   later_            old       yes       old       old       set by heard() and released() while trying, cleared by
//                                                             send()
//   cooling_down_     old       no        yes       old       set by next() while others have their turns; cleared by
//                                                             send(), or while this client holds
//   riding_           old       yes       old       old       set by rides(), cleared by send()
//   suspects_         old       yes       old       old       set by the alarm of a turn; cleared by send()
//   only_stands_      old       old       yes       old       set by joined() and next(), with no attempt; cleared
//                                                             by park()
//   awaits_turn_      old       old       yes       old       set in the turn of another client; cleared by park() and
//                                                             the alarm
//   crowded_          yes       yes       yes       yes       set and cleared by answers about the queue
//   lingers_          yes       no        no        no one    set when the last waiter leaves; cleared by joined(), the
//                                                             alarm and stop_lingering()
//   incentive_        old       yes       old       old       set by woken() or the alarm, cleared by take_incentive()
//   delayed_          no        no        yes       no        set by woken() without a budget, and by [10]; cleared
//                                                             by the next step
//   next_is_busy_     old       no        old       old       set by a grant to a part of a party; cleared by send()
//                                                             and when the first waiter leaves
//   listening_        lingers   yes       yes       yes       set by listen(); cleared with the last waiter, unless the
//                                                             line lingers, and by unsubscribed(): a line may
//                                                             linger without it
//   listens_          as listening_; without it the flag is old    set by subscribed()
//   tries.granted     -         yes       no        no        from a grant until replicas have it, or the field is
//                                                             given back
//   place_            no        yes       yes       yes       stands from the first attempt that asks for a place,
//                                                             until a grant or the release that gives it up
//   tries.stands      -         yes       yes       old       from the first attempt of a waiter that wants several,
//                                                             until the field is given back
//   backoff_delay     yes       yes       yes       yes       above 0: doubled by a second unanswered attempt, cleared
//                                                             by an answer
//   last_failure      yes       yes       yes       yes       set by a failure; cleared by an answer about the lock, or
//                                                             by inherited()
//   held              yes       yes       yes       yes       set by an answer about the lock, by found_taken, by the
//                                                             end of "parked while held" and by inherited()
//   polled            yes       yes       yes       yes       doubled by the alarm of "parked while held"; cleared by a
//                                                             grant of Redis
//   granted_in_part   yes       yes       yes       yes       set by a divided vote; cleared by a grant, or by busy
//
// yes: possible. old: left from an earlier step. no one: only without waiters, and then the line lingers next.
// The last five are what the line knows (known_). It forgets them when it is over. "Parked while held" is derived:
// parked, with neither last_failure nor cooling_down_, only_stands_ or awaits_turn_.

// ---- events

line_action line_rules::joined(const line_conditions& at) {
  HOLDFAST_ASSERT(at.first && (step_ == step::idle || (step_ == step::blocked && !alarm_)));
  lingers_ = false;
  // The lock is most likely held. The answer to the place tells, and an attempt before it would cost a command.
  if (ordered_ && crowded_ && listens() && step_ == step::idle && !at.held_here && !at.owner_holds &&
      !at.first->request.asks_once()) {
    auto action = park(at.now + looks_, step::parked);
    only_stands_ = true;
    return action;
  }
  // Redis has just said busy, for several names at once. The acknowledgement of the subscription brings the next
  // attempt, so no release between the two is missed.
  if (!at.first->request.found_taken || step_ == step::blocked) return next(at);
  known_.held = at.now;
  listen();
  return park_while_held(nanoseconds::max(), at.now, next_poll(), at);
}

line_action line_rules::woken(incentive why, const line_conditions& at) {
  // The attempt in flight may have been executed before the release that this message reports.
  if (step_ == step::trying) woken_ = true;
  if (step_ != step::parked) return {};
  // A release of another client has brought the end of the cool-down nearer.
  if (const auto left = cool_down_left(at); cooling_down_ && left > nanoseconds::zero())
    return park(at.now + left, step::parked);
  // A place is called when its turn has come, and never in a race.
  if (ordered_ || known_.wake_ups.next() <= at.now) {
    if (!ordered_) known_.wake_ups.spend(at.now);
    incentive_ = why;
    return next(at);
  }
  if (*alarm_ <= known_.wake_ups.next()) return {};
  auto action = park(known_.wake_ups.next(), step::parked);
  delayed_ = why;
  return action;
}

// A message about a lock that this client holds is most often its own notification: the name doubts its hold.
line_action line_rules::heard(const line_conditions& at, queue_place::message message) {
  if (at.first) at.first->tries.splits = 0;
  if (at.held_here) return {};
  if (at.first && at.first->row.queue) return heed(place_.heard(message, at.first->row.bars), at);
  return rumoured(at);
}

line_action line_rules::rumoured(const line_conditions& at) {
  if (at.held_here) return {};
  // The answer of the attempt in flight decides whether this is news.
  heard_ |= step_ == step::trying;
  return step_ == step::trying ? line_action() : woken(incentive::news, at);
}

line_action line_rules::pushed(const line_conditions& at) {
  if (at.held_here || !at.first) return {};
  if (at.first->row.voted) {
    // The attempt in flight may have read the key before this change.
    forgotten_ |= step_ == step::trying;
    return {};
  }
  tracked_ = false;
  return woken(incentive::news, at);
}

line_action line_rules::in_question(nanoseconds spread, bool pushes, const line_conditions& at) {
  if (!at.first || !at.first->row.pushed.waits) return {};
  if (step_ == step::trying) forgotten_ = woken_ = true;
  // A line that was not tracked and will not be has its polls.
  const bool concerned = std::exchange(tracked_, false) || pushes;
  if (!concerned || step_ != step::parked || at.held_here) return {};
  known_.polled = {};
  return woken_within(random_.up_to(spread), at);
}

line_action line_rules::woken_within(nanoseconds pause, const line_conditions& at) {
  // The budget must be there when the alarm comes.
  const auto until = std::max(at.now + pause, known_.wake_ups.next());
  if (*alarm_ <= until) return {};
  auto action = park(until, step::parked);
  delayed_ = incentive::news;
  return action;
}

// A reader may be the first by now. The turn of the client then ends by itself.
line_action line_rules::called(const line_conditions& at) {
  if (!at.first || !at.first->row.bars) return {};
  place_.called();
  return at.held_here ? line_action() : woken(incentive::news, at);
}

line_action line_rules::released(std::uint64_t others, const line_conditions& at) {
  if (!at.first || !at.first->row.queue) return woken(incentive::news, at);
  return heed(place_.released(others), at);
}

line_action line_rules::heed(queue_place::heed when, const line_conditions& at) {
  if (when == queue_place::heed::now) return woken(incentive::news, at);
  later_ |= when == queue_place::heed::later && step_ == step::trying;
  if (when == queue_place::heed::never || step_ != step::parked || delayed_) return {};
  const auto until = at.now + place_.pause(random_);
  return until < *alarm_ ? park(until, step::parked) : line_action();
}

departure line_rules::departs(const kind& like, bool of_hold, const std::optional<line_waiter>& first) noexcept {
  const bool goes_on = first && &first->row == &like;
  // A reader that waits is let in by the release of a write. A writer that does not listen cannot be called.
  const bool again = of_hold && goes_on && like.bars && listens() && !first->request.asks_once();
  if (again) place_.stands_again();
  return {.leave = !goes_on, .again = again, .reserve = place_.reserve()};
}

// A release may have been published between the busy answer and this acknowledgement, so one more attempt must follow.
line_action line_rules::subscribed(const line_conditions& at) {
  HOLDFAST_ASSERT(listening_);
  listens_ = true;
  return woken(incentive::none, at);
}

line_action line_rules::shown(const stand_answer& state, unsigned others, const line_conditions& at) {
  listens_ = listening_;
  crowded_ = state.ttl || others > 0;
  if (!at.first || step_ != step::parked || at.held_here) return {};
  // The TTL may be that of its own grant, whose answer was lost. Its next attempt tells, and keeps its time.
  if (at.first->tries.unanswered > 0) return {};
  if (state.ttl == milliseconds::max()) return leave(&without_ttl);
  if (at.first->request.asks_once() || !listening_) return woken(incentive::none, at);
  known_.last_failure.reset();
  // An earlier alarm stays: the place was told before. The next attempt tells whose turn it is, and suspects nobody.
  if (!state.ttl && others == 0) return woken(incentive::none, at);
  if (!state.ttl) return awaits_turn_ ? line_action() : await_turn(place_.pause(random_), at);
  known_.held = at.now;
  // The alarm may be for a turn that has begun since: the lock has a holder now.
  return park_while_held(*state.ttl, at.now, nanoseconds::max(), at);
}

line_action line_rules::places_left(const line_conditions& at) {
  return at.first && step_ == step::parked && only_stands_ ? woken(incentive::none, at) : line_action();
}

line_action line_rules::freed(turn turn, const line_conditions& at) {
  crowded_ = turn == turn::ours || turn == turn::other;
  if (!at.first) return lingers_ ? park_lingering(at.now + linger_after_release) : line_action();
  switch (turn) {
    case turn::ours: return {};  // its call comes
    case turn::other: return step_ == step::parked ? await_turn(patience(), at) : line_action();
    case turn::nobody:
    case turn::unknown: break;
  }
  return woken(incentive::news, at);
}

// A caller on a slow link keeps its turn. But a waiter asks as often as its user wants.
nanoseconds line_rules::patience() const {
  return std::min<nanoseconds>(queue_place::patience(random_), settings_.poll_cap);
}

line_action line_rules::await_turn(nanoseconds pause, const line_conditions& at) {
  auto action = park(at.now + pause, step::parked);
  awaits_turn_ = true;
  return action;
}

// A field that was sent and not answered must be asked for by itself: its grant may be on the way.
bool line_rules::may_ride(const line_conditions& at) const noexcept {
  if (!ordered_ || !at.first || at.owner_holds || at.leaving || step_ != step::parked) return false;
  return !at.first->request.asks_once() && at.first->tries.unanswered == 0;
}

void line_rules::rides(const line_conditions& at) {
  HOLDFAST_ASSERT(may_ride(at));
  send(at);
  riding_ = true;
}

line_action line_rules::rode_in_vain(const line_conditions& at) {
  HOLDFAST_ASSERT(riding() && at.first);
  step_ = step::idle;
  at.first->tries.unanswered = 1;
  return next(at);
}

line_action line_rules::unsubscribed(const failure& why, const line_conditions& at) {
  HOLDFAST_ASSERT(listening_ && !why.mends_itself());
  listening_ = false;
  // The refusal may be an ACL's. A waiter must not sleep until its poll cap for messages that never come.
  if (step_ == step::parked) step_ = step::idle;
  return at.first ? fail(why, at, {}) : line_action();
}

line_action line_rules::alarm(const line_conditions& at) {
  HOLDFAST_ASSERT(alarm_);
  alarm_.reset();
  const bool missed = std::exchange(awaits_turn_, false) && step_ == step::parked;
  if (lingers_) return stop_lingering(at);
  if (const auto why = std::exchange(delayed_, std::nullopt)) return woken(*why, at);
  if (parked_while_held() && !at.held_here) {
    known_.polled = 2 * first_poll();
    incentive_ = incentive::poll;
  }
  if (step_ == step::blocked) step_ = step::idle;
  auto action = next(at);
  suspects_ = missed && action.then == act::send;
  return action;
}

// A server that accepts no writes refuses SET without a look at the key. The script can still find the lock held.
line_action line_rules::first_try_refused(const line_conditions& at) {
  HOLDFAST_ASSERT(step_ == step::trying && at.first);
  step_ = step::idle;
  known_.backoff_delay = {};
  return send(at);
}

line_action line_rules::answered(const attempt& answer, const line_conditions& at) {
  HOLDFAST_ASSERT(step_ == step::trying && at.first);
  step_ = step::idle;
  auto& waiter = *at.first;
  const auto& reply = answer.reply;
  if (answer.answered) known_.backoff_delay = {};
  if (answer.answered && (waiter.row.queue || ordered_)) place_.took(at.now - answer.sent);
  // A minority of primaries may have granted it. Those grants keep every other caller from a majority.
  const bool in_part = waiter.row.voted && (reply.failed || reply.value.type != acquire_answer::kind::acquired);
  auto before = in_part ? give_back(waiter.tries, answer.may_have_run) : line_action();
  if (reply.failed) {
    // The connection reports its own outage, so fail() must not take this failure for news.
    if (!answer.answered) note(*reply.failed);
    if (!in_part && reply.failed->may_have_run) ++waiter.tries.unanswered;
    if (waiter.tries.unanswered >= most_unanswered && !answer.answered && !waiter.request.asks_once()) {
      known_.backoff_delay = std::clamp(2 * known_.backoff_delay, least_backoff_delay, longest_backoff_delay);
      step_ = step::blocked;
      return rest(give_back(waiter.tries, everywhere));
    }
    return fail(*reply.failed, at, before);
  }
  known_.held = at.now;
  known_.last_failure.reset();
  switch (reply.value.type) {
    case acquire_answer::kind::acquired: return acquired(answer, at);
    case acquire_answer::kind::busy: return busy(answer, at, before);
    case acquire_answer::kind::busy_without_ttl: break;
  }
  return leave(&without_ttl, before);
}

line_action line_rules::replicated(const attempt& answer, const std::optional<failure>& too_few,
                                   const line_conditions& at) {
  HOLDFAST_ASSERT(step_ == step::trying && at.first && at.first->tries.granted);
  step_ = step::idle;
  auto& tries = at.first->tries;
  tries.granted = false;
  if (!too_few) return taken(answer, at);
  // A failover would forget this grant, so it is given back. The next attempt has another field.
  return fail(*too_few, at, give_back(tries, everywhere));
}

line_action line_rules::given_back(const line_conditions& at) {
  HOLDFAST_ASSERT(giving_back_ > 0);
  // A running alarm means that the pause began already.
  if (--giving_back_ > 0 || step_ != step::blocked || alarm_) return {};
  if (known_.backoff_delay > nanoseconds::zero() && at.first) return park(at.now + known_.backoff_delay, step::blocked);
  step_ = step::idle;
  return next(at);
}

// Only Redis or a hold of this client can prove contention. Without such a proof the result depends on whether the
// server was silent.
line_action line_rules::timed_out(const line_waiter& waiter, const line_conditions& at) {
  HOLDFAST_ASSERT(at.first);
  if (waiter.tries.granted) return leave(&not_replicated_in_time);
  // The line is blocked, and half of the time of a try_lock() is over. The other half is for the answer.
  if (waiter.request.asks_once()) return send(at);
  const bool held = parked_while_held() || at.held_here;
  if (held || (known_.held && *known_.held >= waiter.since)) return leave(nullptr);
  if (known_.last_failure && known_.last_failure->code != errc::unreachable) return leave(&*known_.last_failure);
  return {.then = act::silent};
}

// A line that is parked or blocked stays so for its new first waiter: the reason of the wait is the same. A reader does
// not wait for what a writer has waited for, and a waiter for several permits must close its door.
line_action line_rules::left(const line_waiter& waiter, bool was_first, bool served, primary_set granted_at,
                             const line_conditions& at) {
  HOLDFAST_ASSERT(!lingers_);
  if (was_first && step_ == step::trying) step_ = step::idle;
  // The place stays for a next waiter of the same kind.
  if (was_first && place_.stands() && !(at.first && &at.first->row == &waiter.row)) {
    place_.leaves();
    granted_at = everywhere;
  }
  line_action action;
  if (granted_at != nowhere && !waiter.tries.field.empty()) action = give_back(waiter.tries, granted_at);
  if (!at.first) {
    lingers_ = (served || waiter.request.asks_once()) && listening_ && at.may_linger;
    if (!lingers_) listening_ = false;
    return next(at, action);
  }
  if (!was_first) return action;
  const auto busy_until = std::exchange(next_is_busy_, std::nullopt);
  const bool must_ask = at.first->row.bars != waiter.row.bars || at.first->request.amount > 1;
  if (step_ == step::parked && must_ask) step_ = step::idle;
  // A message since may be about a release after that grant.
  if (step_ == step::idle && busy_until && !must_ask && !woken_ && !heard_ && giving_back_ == 0) {
    listen();
    return park(*busy_until, step::parked, action);
  }
  if (step_ == step::idle) return next(at, action);
  if (step_ == step::parked && cooling_down_) return park(at.now + cool_down_left(at), step::parked, action);
  return action;
}

line_action line_rules::stop_lingering(const line_conditions& at) {
  HOLDFAST_ASSERT(lingers_ && !at.first);
  lingers_ = listening_ = false;
  return next(at);
}

void line_rules::inherited(time_point now) noexcept {
  known_.held = now;
  known_.last_failure.reset();
  known_.wake_ups.granted();
}

// ---- decisions

// The first waiter, perhaps a new one, takes its next step.
line_action line_rules::next(const line_conditions& at, line_action before) {
  // Redis would execute that release and the next acquire together, and other clients would never find the lock free.
  if (giving_back_ > 0) {
    step_ = step::blocked;
    return rest(before);
  }
  if (!at.first) {
    step_ = step::idle;
    // The end of the hold or of the cool-down stops the lingering. The alarm is for holds that last longer.
    if (!lingers_) {
      known_ = {};
      return rest(before);
    }
    return park_lingering(at.now + longest_linger, before);
  }
  // The waiter leaves the line at once, so the next one must not inherit an alarm that has fired.
  if (at.owner_holds) {
    step_ = step::idle;
    before.then = act::reenter;
    return before;
  }
  // The answer that the place has left brings the attempt. Half of the time of a try_lock() is for its own answer.
  const bool once = at.first->request.asks_once();
  const auto half = once ? at.first->since + (at.first->answer_by - at.first->since) / 2 : time_point::max();
  if (at.leaving && !at.held_here && at.now < half) {
    if (!once) listen();
    auto action = park(std::min(at.now + looks_, half), step::parked, before);
    only_stands_ = true;
    return action;
  }
  // A try_lock() promises the state of the lock in Redis, so it does not wait for the cool-down.
  if (once) return send(at, before);
  if (!at.held_here) {
    const auto pause = cool_down_left(at);
    if (pause <= nanoseconds::zero()) return send(at, before);
    // Each release of another client brings the end of the cool-down nearer.
    listen();
    cooling_down_ = true;
    return park(at.now + pause, step::parked, before);
  }
  cooling_down_ = false;
  // The hold's end wakes the line. The subscription is for a force-unlock by another client.
  listen();
  return park_while_held(nanoseconds::max(), at.now, nanoseconds::max(), at, before);
}

line_action line_rules::send(const line_conditions& at, line_action before) {
  HOLDFAST_ASSERT(at.first && step_ != step::trying);
  // timed_out() takes this for contention if the attempt finds no answer.
  if (parked_while_held()) known_.held = at.now;
  step_ = step::trying;
  woken_ = heard_ = forgotten_ = tracked_ = later_ = cooling_down_ = riding_ = suspects_ = false;
  alarm_.reset();
  next_is_busy_.reset();
  delayed_.reset();
  const auto& request = at.first->request;
  auto& tries = at.first->tries;
  const bool never_asked = !request.asks_once() && !request.found_taken && !request.whole && tries.field.empty();
  // The cheaper first command cannot recognise its own field. A field that was sent before needs the script.
  tries.first_try = never_asked && at.first->row.first_acquire.make;
  // A try_lock() closes no door. The door of an earlier attempt may still be closed.
  tries.stands |= !request.asks_once() && request.amount > 1 && at.first->row.acquire_party.make;
  if (at.first->row.queue) tries.place = place_.sends(!request.asks_once() && listens());
  before.then = act::send;
  return before;
}

// A repeated grant counts as unanswered until replicas have it. A waiter that leaves meanwhile gives its field back.
line_action line_rules::acquired(const attempt& answer, const line_conditions& at) {
  if (at.first->request.asked.min_replicas == 0) return taken(answer, at);
  step_ = step::trying;
  at.first->tries.granted = true;
  at.first->tries.unanswered = 1;
  return {.then = act::confirm};
}

line_action line_rules::taken(const attempt& answer, const line_conditions& at) {
  auto& tries = at.first->tries;
  if (!is_of_use(answer, at.first->request, at.now)) return fail(granted_too_late, at, give_back(tries, everywhere));
  if (const auto ttl = answer.reply.value.holder_ttl)
    next_is_busy_ = look_after(*ttl, answer.sent, nanoseconds::max(), at.now);
  known_.wake_ups.granted();
  known_.polled = {};
  known_.granted_in_part = nowhere;
  place_.granted();
  // The grant may find no memory for its hold. Then the field is given back, as after an unanswered attempt.
  tries.unanswered = 1;
  return {.then = act::grant};
}

// The validity counts from the time of sending, so a slow answer can bring a grant that is nearly over.
bool line_rules::is_of_use(const attempt& grant, const lock_request& request, time_point now) const noexcept {
  const auto ttl = request.asked.ttl;
  return now < valid_until(grant.sent, ttl, settings_.drift) - min_validity(ttl);
}

line_action line_rules::busy(const attempt& answer, const line_conditions& at, line_action before) {
  auto& waiter = *at.first;
  const auto& reply = answer.reply.value;
  waiter.backoff.reset();
  // A first try learns no TTL, so the script must follow. It usually follows the acknowledgement of a new subscription.
  // An existing subscription brings none.
  if (!reply.holder_ttl && listening_) return send(at, before);
  if (reply.holder_ttl) known_.wake_ups.found_busy(answer.sent, at.now, *reply.holder_ttl);
  if (at.owner_holds) {
    before.then = act::reenter;
    return before;
  }
  if (waiter.request.asks_once()) return leave(nullptr, before);
  known_.granted_in_part = reply.split ? answer.yes : nowhere;
  // The line is blocked, because messages about votes that other callers give back say nothing about the lock.
  if (reply.split && waiter.tries.splits < quick_rounds) {
    const auto pause = random_.up_to(longest_split_pause(*reply.split, ++waiter.tries.splits));
    return park(at.now + pause, step::blocked, before);
  }
  if (!reply.split) waiter.tries.splits = 0;
  if (waiter.row.queue) place_.busy(reply.rank);
  if (ordered_) crowded_ = true;
  // A message during the attempt may be about the release of the holder that the answer names.
  const bool tracked = answer.tracked && !forgotten_;
  const bool again = listening_ && (woken_ || (heard_ && !tracked));
  // Messages before the acknowledgement are missed, so subscribed() sends again.
  listen();
  const nanoseconds holder_ttl = reply.reserved ? place_.reserve() : reply.holder_ttl.value_or(milliseconds::zero());
  const auto ttl_left = reply.holder_ttl ? holder_ttl : nanoseconds::max();
  auto poll = tracked ? nanoseconds::max() : next_poll();
  if (waiter.tries.stands || place_.stands()) poll = std::min(poll, looks_ - random_.up_to(looks_ / 10));
  if (later_) poll = std::min<nanoseconds>(poll, place_.pause(random_));
  // Messages begin such tries, so a flood must not cost more of them than wake-ups.
  if (at.again_after < nanoseconds::max()) {
    poll = std::min(poll, std::max(at.again_after, known_.wake_ups.next() - at.now));
    known_.wake_ups.spend(at.now);
  }
  auto parked = ordered_ && reply.reserved ? park(at.now + patience(), step::parked, before)
                                           : park_while_held(ttl_left, answer.sent, poll, at, before);
  awaits_turn_ = ordered_ && reply.reserved;
  tracked_ = tracked;
  if (!again) return parked;
  auto woke = woken(incentive::news, at);
  if (woke.then == act::wait) return parked;
  parked.then = woke.then;
  parked.until = woke.until;
  return parked;
}

// A suspended process finds old answers in its sockets, so the slowest one seems to have taken minutes.
nanoseconds line_rules::longest_split_pause(nanoseconds slowest, unsigned round) const {
  slowest = std::min(slowest, longest_backoff_delay);
  const auto cap = std::max<nanoseconds>(2 * slowest, settings_.poll_cap);
  return std::min({slowest * (1U << round), cap, longest_backoff_delay});
}

line_action line_rules::fail(const failure& why, const line_conditions& at, line_action before) {
  auto& waiter = *at.first;
  const bool news = !known_.last_failure || known_.last_failure->code != why.code;
  note(why);
  if (may_ask_again(why, at)) return send(at, before);
  if (!why.mends_itself() || waiter.request.asks_once()) return leave(&*known_.last_failure, before);
  // Connections report their own outages. A server that answers but refuses to write is reported here alone.
  if (news && why.code == errc::server_refused) {
    before.outage = true;
    before.failed = &*known_.last_failure;
  }
  const auto pause = waiter.backoff.next(random_);
  const bool blocked = waiter.tries.unanswered == 0 && known_.backoff_delay > nanoseconds::zero();
  return park(at.now + std::max<nanoseconds>(pause, known_.backoff_delay), blocked ? step::blocked : step::parked,
              before);
}

// A decision needs no memory. Without memory for the text of a failure it has none.
void line_rules::note(const failure& why) noexcept { known_.last_failure = redis::failure_with(why.code, why.detail); }

// The connection of a try_lock() has ended before its timeout. The second copy is safe: if the first has run, Redis
// finds the same field.
bool line_rules::may_ask_again(const failure& why, const line_conditions& at) const {
  const auto& waiter = *at.first;
  const bool lost = why.may_have_run && why.mends_itself() && waiter.tries.unanswered == 1;
  return lost && waiter.request.asks_once() && !waiter.request.whole && at.now < waiter.answer_by;
}

line_action line_rules::leave(const failure* why, line_action before) const {
  before.then = act::done;
  before.failed = why;
  return before;
}

// The field is released, whether it was granted or may still be. A late copy of the acquire must not match a new
// attempt, so the next one has a field of its own.
line_action line_rules::give_back(attempts& tries, primary_set at, line_action before) {
  HOLDFAST_ASSERT(!tries.field.empty() && before.given_back_at == nowhere);
  tries.unanswered = 0;
  tries.granted = tries.stands = false;
  before.given_back = std::exchange(tries.field, {});
  before.given_back_at = at;
  if (at != nowhere) ++giving_back_;
  return before;
}

line_action line_rules::park(time_point until, step step, line_action before) {
  step_ = step;
  alarm_ = until;
  delayed_.reset();
  only_stands_ = awaits_turn_ = false;
  before.then = act::park;
  before.until = until;
  before.waits = true;
  return before;
}

line_action line_rules::park_while_held(nanoseconds holder_ttl, time_point asked, nanoseconds poll,
                                        const line_conditions& at, line_action before) {
  return park(look_after(holder_ttl, asked, poll, at.now), step::parked, before);
}

line_action line_rules::park_lingering(time_point until, line_action before) {
  auto action = park(until, step::idle, before);
  action.waits = false;
  return action;
}

// The TTL counts from when the command was sent. If the process was suspended since, part of it is gone. A lock may
// become free without a message: a key expires, or the message is lost. Many clients must not poll together.
time_point line_rules::look_after(nanoseconds holder_ttl, time_point asked, nanoseconds poll, time_point now) const {
  const nanoseconds cap = settings_.poll_cap;
  const auto capped = cap - random_.up_to(cap / 10);
  // Redis keeps a key through the millisecond in which it ends.
  const nanoseconds least = milliseconds(1) + random_.up_to(milliseconds(1));
  const auto pause = holder_ttl < capped ? holder_ttl + least : capped;
  return now + std::min(std::max(pause - (now - asked), least), poll);
}

line_action line_rules::rest(line_action before) {
  alarm_.reset();
  delayed_.reset();
  before.then = act::rest;
  return before;
}

void line_rules::listen() noexcept {
  if (!std::exchange(listening_, true)) listens_ = false;
}

// A waiter with a deadline asks within half of its time: a cool-down alone must not fail it. A waiter that came after
// the cool-down's end has nothing to wait for. A closed door lets nobody else in, so its waiter skips the cool-down.
nanoseconds line_rules::cool_down_left(const line_conditions& at) const noexcept {
  if (!at.first || at.first->tries.stands) return {};
  const auto& waiter = *at.first;
  auto until = at.cool_down_until;
  if (until <= waiter.since) return {};
  if (waiter.request.deadline != time_point::max())
    until = std::min(until, waiter.since + (waiter.request.deadline - waiter.since) / 2);
  return until - at.now;
}

nanoseconds line_rules::first_poll() const noexcept {
  return std::clamp<nanoseconds>(known_.polled, polls_.first, polls_.longest);
}

// Other clients may release a lock of this kind without a message. The pause doubles, because most holders do publish.
nanoseconds line_rules::next_poll() {
  if (polls_.longest == milliseconds::zero()) return nanoseconds::max();
  const auto pause = first_poll();
  return pause - random_.up_to(pause / 10);
}

// A failure and a cool-down say nothing about the lock.
bool line_rules::parked_while_held() const noexcept {
  return step_ == step::parked && !known_.last_failure && !cooling_down_ && !only_stands_ && !awaits_turn_;
}

}  // namespace holdfast::detail
