// SPDX-License-Identifier: BSL-1.0
// The waiters of a name: their events go to the rules of the line, and the actions of the rules are performed here.
#include <algorithm>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/line/discipline.hpp"
#include "sync/name.hpp"

namespace holdfast::detail {
namespace {

/// Of a kind with a queue.
queue_place::message news_in(std::string_view payload) {
  using message = queue_place::message;
  const char news = payload.empty() ? '0' : payload.back();
  if (news >= '2' && news <= '9') return {message::other_called, static_cast<std::uint8_t>(news - '1')};
  return news == '1' ? message::write_ended : message::read_ended;
}

/// Null: contention.
lock_answer answer_of(const failure* why) {
  return why ? lock_answer{redis::failure_with(why->code, why->detail)} : lock_answer();
}

}  // namespace

// ---- events

// A script that publishes on both channels puts a zero before the message on the sharded one. Redisson reads the same
// number.
bool name::is_copy(const lock_keys& keys, std::string_view payload) noexcept {
  return keys.word == publish_word::both && payload.size() > 1 && payload.front() == '0';
}

/// The subscriptions of a client in the queue of a lock. A client on the channel of the lock that is not counted would
/// be taken for one of another library. So the channels are joined in this order, and left in the reverse one.
class name::calls_by_name final : subscriber {
 public:
  calls_by_name(name& of, topology& servers, const lock_keys& keys, const uuid& client, std::string_view channel)
      : of_(of), counted_(servers.subscribe(keys.of.queue.counted(keys), *this)),
        called_(servers.subscribe(keys.of.queue.called(keys, client), *this)),
        messages_(servers.subscribe(channel, of)) {}

 private:
  // The acknowledgement of the last channel is that of all.
  void on_subscribed() override {}
  void on_message(std::string_view payload) override { of_.on_call(payload); }
  void on_subscribe_failed(error_code error, const std::string& detail) override {
    of_.on_subscribe_failed(error, detail);
  }

  name& of_;
  const subscription counted_, called_, messages_;
};

// The caller of join() learns of the lack of memory by the exception, and has nothing that it could cancel.
void name::join(std::shared_ptr<acquisition> caller) {
  try {
    enter_line(caller);
  } catch (const std::bad_alloc&) {
    caller->forget_caller();
    throw;
  }
}

void name::enter_line(const std::shared_ptr<acquisition>& caller) {
  const visit here(*this);
  // Only contended names need turns, so an uncontended lock has no state for them.
  if ((line_ && !line_->over()) || !holds_.empty()) share();
  // The line is made late: a hold, a release or a cool-down needs the name without one.
  if (!line_) line_.reset(new (*env().blocks) waiting_line(env(), keys_->of));
  auto& waiter = *caller;
  line_->add(caller);
  try {
    begin(waiter);
  } catch (const std::bad_alloc&) {
    if (waiter.seat.hook.is_linked()) take_out(waiter, false);
    throw;
  }
}

void name::begin(acquisition& waiter) {
  waiter.wait_in(*this);
  const bool once = waiter.asks_once();
  const bool asks = first_asks().asks(waiter.seat.ahead);
  // Another waiter of this client is first, so the lock is taken or about to be. A try_lock() need not ask.
  if (once && !asks) return finish(waiter, {});
  // A first attempt in an outage is a wait, too. Without an observer waits are not counted, and the look-up is saved.
  const bool in_outage = env().settings.observer && env().servers.in_outage(keys_->lock);
  if (!asks || in_outage) waiter.count_as_waiting();
  if (!asks) return;
  // The other half of its time is for the answer.
  if (once && line_->rules.blocked()) waiter.wake_at(env().now() + waiter.time_left() / 2);
  perform(line_->rules.joined(conditions()));
}

void name::leave(acquisition& waiter, lock_answer why) {
  const visit here(*this);
  finish(waiter, std::move(why));
}

void name::time_out(acquisition& waiter) {
  const visit here(*this);
  act(line_->rules.timed_out(seen(waiter), conditions()), &waiter);
}

void name::attempt_answered(acquisition& waiter, const outcome& outcome) {
  const visit here(*this);
  const auto& tries = waiter.seat.tries;
  if (first_asks().refuses_first_try(tries, outcome)) return act(line_->rules.first_try_refused(conditions()));
  const auto party = std::exchange(line_->party, {});
  auto reply = first_asks().read(waiter.keys->of, tries, outcome, std::max<std::size_t>(party.size(), 1));
  attempt answer{std::move(reply),     !outcome.error, outcome.sent,   outcome.yes,
                 outcome.may_have_run, outcome.server, outcome.tracked};
  if (party.empty()) return on_attempt(waiter, answer);
  // The end of the first lets the next waiter ask, so the others of its party leave the line before it.
  auto served = settle_party(party, answer);
  // The waiter that found too few may have left meanwhile. The next one was not refused.
  auto& value = answer.reply.value;
  if (value.type == acquire_answer::kind::acquired && value.holder_ttl && !line_->is_second(party[value.served]))
    value.holder_ttl.reset();
  each_step step;
  step([&] { on_attempt(waiter, answer); });
  for (auto& [caller, lease] : served) step([&] { tell(*caller, {{}, std::move(lease)}); });
  step.rethrow();
}

// The command may run after the release of a member that has left: the release is written first, or the command is sent
// once more. Where its answer does not tell, the field is released once more.
void name::give_back_leavers(const std::vector<owner_field>& party, std::size_t asked_for, milliseconds ttl) {
  line_->each_of(party, [&](std::size_t place, const acquisition* member) {
    if (place == 0 || place >= asked_for || member) return;
    if_memory([&] { give_back(keys_, party[place], ttl, {}, everywhere); });
  });
}

// The command has not run, and never will. A field may still have an earlier attempt without an answer.
void name::forget_attempt_of(const std::vector<owner_field>& party) noexcept {
  line_->each_of(party, [](std::size_t place, acquisition* member) {
    if (place > 0 && member) --member->seat.tries.unanswered;
  });
}

// The first waiter has given its field back and stays. With its next field it may find too few permits, while those
// that the members were granted end unused. So each member gives its field back as well.
void name::give_back_behind_first(milliseconds ttl) {
  if_memory([&] {
    line_->each_behind_first([&](acquisition& member) {
      auto& tries = member.seat.tries;
      if (tries.unanswered == 0) return false;
      give_back(keys_, tries.field, ttl, {}, everywhere);
      tries.field.clear();
      tries.unanswered = 0;
      return true;
    });
  });
}

// A member whose field may have been granted keeps it, and asks again with it behind the first, or as the first. The
// same holds where memory is short. A member that has left meanwhile has released its field. A copy of the command may
// have run since, so the field is released once more.
std::vector<name::served_waiter> name::settle_party(const std::vector<owner_field>& party, const attempt& attempt) {
  std::vector<served_waiter> served;
  const auto& reply = attempt.reply;
  if (party.empty()) return served;
  const auto ttl = line_->first().request.asked.ttl;
  if (reply.failed) {
    if (reply.failed->may_have_run)
      give_back_leavers(party, party.size(), ttl);
    else
      forget_attempt_of(party);
    return served;
  }
  const std::size_t granted = reply.value.type == acquire_answer::kind::acquired ? reply.value.served : 0;
  give_back_leavers(party, granted, ttl);
  if_memory([&] {
    std::vector<acquisition*> members;
    members.reserve(party.size());
    served.reserve(granted);
    line_->each_of(party, [&](std::size_t, acquisition* member) { members.push_back(member); });
    for (std::size_t n = 1; n < party.size(); ++n) {
      auto* const member = members[n];
      if (!member) continue;
      if (n >= granted) {
        --member->seat.tries.unanswered;  // an earlier attempt with this field may still be without an answer
      } else if (line_->rules.is_of_use(attempt, member->request, env().now())) {
        auto lease = hold_for(member->request, member->keys, party[n], attempt, env().now());
        // The field belongs to the hold from here on.
        member->seat.tries.unanswered = 0;
        member->seat.tries.field.clear();
        served.push_back({take_out(*member, true), std::move(lease)});
      }
    }
  });
  return served;
}

void name::settled(acquisition& waiter, const attempt& attempt) {
  const visit here(*this);
  on_attempt(waiter, attempt);
}

void name::on_attempt(acquisition& waiter, const attempt& attempt) {
  HOLDFAST_ASSERT(line_->is_first(waiter));
  count_incentive(waiter, attempt);
  if (line_->places && !attempt.reply.failed) {
    const auto& reply = attempt.reply.value;
    if (reply.type == acquire_answer::kind::acquired) line_->places->rules.taken(reply.place);
    if (reply.reserved) note_turn(reply.turn);
  }
  const bool busy = line_->rules.shows_holder(attempt);
  // The holder of a fair mutex came before, or took a turn that was missed. A missed turn takes the places away.
  if (busy && line_->places && !attempt.reply.value.reserved && line_->places->rules.first_stands())
    line_->places->rules.show_all();
  const auto again_after = busy ? found_busy(attempt.reply.value) : nanoseconds::max();
  auto at = conditions();
  at.again_after = again_after;
  act(line_->rules.answered(attempt, at), &waiter, &attempt);
}

void name::count_incentive(const acquisition& waiter, const attempt& attempt) {
  using incentive = line_rules::incentive;
  const auto why = line_->rules.take_incentive();
  if (why == incentive::none || attempt.reply.failed) return;
  using kind = measurement_kind;
  const bool had = attempt.reply.value.type == acquire_answer::kind::acquired;
  env().count(why == incentive::poll ? kind::polled : had ? kind::woken : kind::woken_in_vain, *waiter.keys);
}

void name::on_replicas(acquisition& waiter, const attempt& attempt, const std::optional<failure>& too_few) {
  const visit here(*this);
  if (too_few)
    env().report({.kind = event_kind::not_replicated,
                  .name = keys_->name,
                  .reason = too_few->code,
                  .detail = too_few->detail,
                  .owner = waiter.request.owner,
                  .ttl = waiter.request.asked.ttl});
  act(line_->rules.replicated(attempt, too_few, conditions()), &waiter, &attempt);
}

void name::on_subscribed() {
  const visit here(*this);
  act(line_->rules.subscribed(conditions()));
}

// A client that publishes on both channels listens on both. The copy would wake it a second time, and count as the turn
// of another client.
void name::on_message(std::string_view payload) {
  if (is_copy(*keys_, payload)) return;
  heard(hand_over_.hears_itself(env().time), news_in(payload));
}

void name::on_call(std::string_view payload) {
  if (is_copy(*keys_, payload)) return;
  const visit here(*this);
  act(line_->rules.called(conditions()));
}

// The sender is most often a caller that gave an attempt back. No turn of another client has ended.
void name::on_rumour(std::string_view) {
  const visit here(*this);
  const bool held = barring_hold() != nullptr;
  act(line_->rules.rumoured(conditions()));
  if (held) doubt_hold_here();
}

void name::heard(bool by_ourselves, queue_place::message message) {
  const visit here(*this);
  const bool held = barring_hold() != nullptr;
  act(line_->rules.heard(conditions(), message));
  // Most often the own notification. Any other message may be a force-unlock of the lock that this client holds.
  if (held && !by_ourselves && !keys_->of.queue) doubt_hold_here();
}

void name::on_subscribe_failed(error_code error, const std::string& detail) {
  const visit here(*this);
  auto* const first = line_->empty() ? nullptr : &line_->first();
  act(line_->rules.unsubscribed(redis::failure_with(error, detail), conditions()), first);
}

void name::on_given_back() {
  // A closed name has no line any more.
  if (!line_) return;
  const visit here(*this);
  act(line_->rules.given_back(conditions()));
}

void name::wake() noexcept {
  const visit here(*this);
  if (line_) act(line_->rules.woken(line_rules::incentive::news, conditions()));
}

void name::key_changed(node_id node) {
  const visit here(*this);
  env().count(measurement_kind::pushed, *keys_);
  // The claims come first: a waiter of this client gets no claim that is in doubt.
  for (auto& held : holds_)
    if (!held.ended()) host_.parts.renewals.key_changed(*held.on, node);
  if (!line_) return;
  act(line_->rules.pushed(conditions()));
  // The end of a hold of this client wakes its line.
  if (!keys_->of.voted || !line_ || barring_hold()) return;
  // The subscription may end inside the call.
  if (const auto messages = line_->messages) env().servers.count_as_message(messages, node);
}

void name::key_in_question(nanoseconds spread) {
  if (!line_ || !keys_->of.pushed.waits) return;
  const visit here(*this);
  act(line_->rules.in_question(spread, env().servers.pushes(keys_->lock), conditions()));
}

// Decision: a message about a lock that is held here puts the hold in doubt. It is confirmed 20 ms later, if it still
// exists. The message may be the own release, or a force-unlock. To ask at once would cost a command for each
// hand-over. After 20 ms most holds are over, and the message of their own release has cost nothing. Of a kind that
// does not bar, or has a queue, each message is most often about another hold. A force-unlock then shows at the next
// renewal.
void name::doubt_hold_here() {
  if (auto* const held = live_hold()) held->doubt(milliseconds(20));
}

// The next caller of a kind with an order finds the places subscribed.
bool name::may_linger() const {
  return keys_->of.ordered() || (hand_over_.shared() && (held_here() || hand_over_.cools_down()));
}

void name::end_lingering() {
  if (line_ && line_->rules.lingers()) act(line_->rules.stop_lingering(conditions()));
}

void name::fail(const std::vector<std::shared_ptr<acquisition>>& leaving, error_code error, const char* detail) {
  const visit here(*this);
  each_step all;
  for (const auto& waiter : leaving) all([&] { finish(*waiter, {failure{error, detail}}); });
  all.rethrow();
}

void name::fail_all_of(owner_id owner, error_code error, const char* detail) {
  if (line_) fail(line_->all_of(owner), error, detail);
}

// ---- conditions and actions

line_waiter name::seen(acquisition& waiter) noexcept {
  return {waiter.request,    waiter.keys->of,
          waiter.since(),    waiter.asks_once() ? waiter.answer_by() : time_point::max(),
          waiter.seat.tries, waiter.backoff};
}

line_conditions name::conditions() {
  line_conditions at{
      .now = env().now(), .first = {}, .held_here = false, .cool_down_until = {}, .may_linger = may_linger()};
  // The other facts are about waiters.
  if (line_->empty()) return at;
  at.held_here = barring_hold() != nullptr;
  at.leaving = line_->places && line_->places->rules.is_one_too_many();
  if (!keys_->of.queue) at.cool_down_until = hand_over_.cool_down_until();
  auto& first = line_->first();
  at.first.emplace(seen(first));
  // A call for several locks has brought the lock to the waiter's own owner. The line would wait for that hold's end,
  // and its owner perhaps for this call.
  const auto& request = first.request;
  at.owner_holds = may_nest(request) && !request.one_of_several && held_by(request.owner);
  return at;
}

// Without memory for the action the first waiter is answered, and the next one becomes the first. No waiter may wait
// for an attempt that was not begun.
void name::act(const line_action& action, acquisition* concerned, const attempt* answer) {
  if (if_memory([&] { perform(action, concerned, answer); })) return;
  while (line_ && !line_->empty() && line_->rules.stuck())
    if_memory([this] { finish(line_->first(), {redis::without_memory()}); });
}

// The alarm goes first, because the release may already bring the next event. The field is released before anything
// else is sent. Without memory for that its key ends with the TTL, and the line goes on.
void name::perform(const line_action& action, acquisition* concerned, const attempt* answer) {
  set_alarm(action);
  if (action.waits) line_->first().count_as_waiting();
  if (action.given_back_at == nowhere) return perform_act(action, concerned, answer);
  if (!line_->empty() && line_->is_first(*concerned)) give_back_behind_first(concerned->request.asked.ttl);
  const bool released = if_memory([&] {
    give_back(
        concerned->keys, action.given_back, concerned->request.asked.ttl, [this] { on_given_back(); },
        action.given_back_at);
  });
  each_step step;
  step([&] { perform_act(action, concerned, answer); });
  if (!released) on_given_back();
  step.rethrow();
}

void name::set_alarm(const line_action& action) noexcept {
  using to = line_action::act;
  if (action.then == to::rest || action.then == to::send) line_->alarm.stop();
  if (action.then != to::park) return;
  line_->alarm.start(action.until, [this] {
    const visit here(*this);
    act(line_->rules.alarm(conditions()));
  });
}

// `concerned`: the waiter that leaves. `answer`: of the grant. Each act is the last thing that happens here, because it
// may bring the next event.
void name::perform_act(const line_action& action, acquisition* concerned, const attempt* answer) {
  using to = line_action::act;
  auto& line = *line_;
  or_not_done([&] { follow(action); });
  switch (action.then) {
    case to::wait:
    case to::rest:
    case to::park: return;
    case to::send: return send_attempt(line.first());
    case to::confirm: return or_not_done([&] { wait_for_replicas(line.first(), *answer); });
    case to::grant: return grant(line.first(), *answer);
    case to::reenter: {
      const hold_ptr mine(hold_of(line.first().request.owner));
      return move_to(*mine, take_out(line.first(), false));
    }
    case to::done: return finish(*concerned, answer_of(action.failed));
    case to::silent: return finish(*concerned, answer_of_silence(*concerned));
  }
}

template <class Step>
void name::or_not_done(Step step) {
  try {
    step();
  } catch (const std::bad_alloc&) {
    line_->rules.not_done();
    throw;
  }
}

// The subscription follows the wish of the rules. The observer hears of an outage that no connection reports.
void name::follow(const line_action& action) {
  auto& line = *line_;
  if (keys_->of.ordered()) {
    if (line.rules.listening() && !line.places)
      line.keep_places(std::make_shared<place_keeper>(env(), *this, keys_, host_.fields.client()));
  } else if (line.rules.listening() != static_cast<bool>(line.messages)) {
    line.messages = line.rules.listening() ? listen() : nullptr;
    if (!line.messages) line.pushes.end();
  }
  if (action.outage)
    env().report({.kind = event_kind::outage,
                  .name = keys_->name,
                  .reason = action.failed->code,
                  .detail = action.failed->detail});
}

subscription name::listen() {
  auto& servers = env().servers;
  const auto channel = first_asks().channel(*keys_);
  if (!keys_->of.queue) return servers.subscribe(channel, *this);
  return std::make_shared<calls_by_name>(*this, servers, *keys_, *host_.fields.client(), channel);
}

void name::send_attempt(acquisition& waiter) {
  const auto& request = waiter.request;
  auto& tries = waiter.seat.tries;
  const bool once = waiter.asks_once();
  // A repeated attempt keeps its field: if the first copy has run, Redis confirms that grant.
  if (tries.field.empty()) tries.field = host_.fields.next(request.amount);
  // The command's timeout is the rest of the caller's time.
  if (once) waiter.stop_alarm();
  // A multi_acquisition sends one command for all its lines, and answers with settled().
  if (request.whole) return request.whole->part_is_first(request.part);
  auto timeout = once ? waiter.time_left() : command_budget(env().settings, request.asked.ttl);
  // A silent primary must not delay a vote that the others can decide.
  if (waiter.keys->of.voted) timeout = std::min(timeout, vote_budget(env().settings, request.asked.ttl));
  const bool track = line_->rules.wants_pushes(request, waiter.keys->of, tries);
  or_not_done([&] {
    try {
      // The server may have got the key since the last attempt.
      if (track) line_->pushes.ask(*env().pushes, keys_->lock);
      auto command = keys_->of.ordered() ? attempt_in_order(waiter)
                                         : first_asks().attempt_of(*waiter.keys, request, tries, gather_party(waiter));
      waiter.send(env(), std::move(command).with_token_ttl(env().settings.token_ttl),
                  {.timeout = timeout,
                   .rank = once ? urgency::refusable : urgency::awaited,
                   .waits_for_reply = !once,
                   .track = track});
    } catch (const std::bad_alloc&) {
      forget_attempt_of(std::exchange(line_->party, {}));
      throw;
    }
  });
}

// The fields of the others are unanswered from now on: each is given back if its waiter leaves before the answer.
// Without memory for more of them the party is smaller.
std::span<const owner_field> name::gather_party(acquisition& first) {
  const auto& own = first.seat.tries.field;
  auto& party = line_->party;
  party.clear();
  if (!first.keys->of.acquire_party.make || first.asks_once()) return {&own, 1};
  std::size_t amount = first.request.amount;
  if_memory([&] {
    line_->each_behind_first([&](acquisition& next) {
      auto& tries = next.seat.tries;
      if (!first_asks().goes_along(first.request, first.seat.tries, next.request, tries, amount)) return false;
      if (party.empty()) party.push_back(own);
      if (tries.field.empty()) tries.field = host_.fields.next(next.request.amount);
      party.push_back(tries.field);
      ++tries.unanswered;
      amount += next.request.amount;
      return true;
    });
  });
  return party.empty() ? std::span(&own, 1) : std::span<const owner_field>(party);
}

void name::wait_for_replicas(acquisition& waiter, const attempt& attempt) {
  const auto& asked = waiter.request.asked;
  // The field identifies the grant: the waiter may have given it back, and have asked again with another one. A grant
  // that stands is of a waiter of this line.
  auto then = [this, caller = std::weak_ptr(waiter.seat.kept), field = waiter.seat.tries.field,
               attempt](const std::optional<failure>& too_few) {
    const auto still = caller.lock();
    if (still && still->open() && still->seat.tries.granted && still->seat.tries.field == field)
      on_replicas(*still, attempt, too_few);
  };
  env().when_replicated(keys_->lock, asked.min_replicas, attempt.server,
                        valid_until(attempt.sent, asked.ttl, env().settings.drift), std::move(then));
}

void name::grant(acquisition& waiter, const attempt& answer) {
  auto& tries = waiter.seat.tries;
  auto record = hold_for(waiter.request, waiter.keys, tries.field, answer, env().now());
  if (waiter.keys->of.voted) waiter.got = record->of->on;
  // The field belongs to the hold from here on, so the line must not release it.
  tries.unanswered = 0;
  tries.field.clear();
  if (!may_share(waiter.keys->of, waiter.request.asked)) return finish(waiter, {{}, std::move(record)});
  auto& open = *record->of;
  const auto joined = let_join_behind_first(open);
  each_step step;
  step([&] { finish(waiter, {{}, std::move(record)}); });
  for (auto& [caller, lease] : joined) step([&] { tell_entered(open, *caller, std::shared_ptr(lease)); });
  // A further call of such an owner may wait behind a writer, and that writer for this owner's unlock.
  for (const auto& each : joined) move_to_hold_of(each.caller->request, open);
  step.rethrow();
}

// The grant also serves the waiters behind the first, even if a writer waits by now: the lock serves them together. The
// first waiter that may not join ends the row, so nobody overtakes it.
std::vector<name::served_waiter> name::let_join_behind_first(hold& open) {
  std::vector<served_waiter> joined;
  if_memory([&] {
    std::vector<acquisition*> behind;
    const auto now = env().now();
    line_->each_behind_first([&](acquisition& next) {
      const bool same = &next.keys->of == &open.keys()->of && may_share(next.keys->of, next.request.asked);
      if (!same || next.request.whole || !open.covers(next.request.asked, now)) return false;
      behind.push_back(&next);
      return true;
    });
    joined.reserve(behind.size());
    for (auto* const next : behind) {
      auto lease = enter(open, next->request, now);
      joined.push_back({take_out(*next, true), std::move(lease)});
    }
  });
  return joined;
}

// Only the attempt under way of the first waiter tells more than the server's other answers. A waiter whose time is
// over is answered, if need be without a text.
lock_answer name::answer_of_silence(const acquisition& waiter) const try {
  const bool asks = line_->rules.trying() && !line_->rules.riding() && line_->is_first(waiter);
  return {asks ? waiter.silence_of_attempt() : env().servers.silence_since(keys_->lock, waiter.since())};
} catch (const std::bad_alloc&) {
  return {redis::without_memory()};
}

// The line goes on without this waiter.
std::shared_ptr<acquisition> name::take_out(acquisition& waiter, bool served) {
  const bool was_first = line_->is_first(waiter);
  auto leaver = line_->take_out(waiter);
  auto& tries = waiter.seat.tries;
  auto may_hold = first_asks().may_have_granted(tries);
  // The place in the queue is given up by the release of a field, also of a waiter that found the place there.
  if (was_first && tries.field.empty() && line_->rules.stands()) tries.field = host_.fields.next();
  // A command that was never written needs no release.
  if (was_first && line_->rules.trying()) {
    const auto written = line_->rules.riding() ? everywhere : waiter.withdraw_attempt();
    const auto party = std::exchange(line_->party, {});
    if (written != nowhere)
      give_back_leavers(party, party.size(), waiter.request.asked.ttl);
    else
      forget_attempt_of(party);
    may_hold |= written;
  }
  act(line_->rules.left(seen(waiter), was_first, served, may_hold, conditions()), &waiter);
  return leaver;
}

// The caller is answered last: its handler may want the lock again.
void name::finish(acquisition& waiter, lock_answer&& answer) {
  const auto leaver = take_out(waiter, answer.value != nullptr);
  tell(*leaver, std::move(answer));
}

void name::tell(acquisition& leaver, lock_answer&& answer) {
  leaver.answer(std::move(answer), [&](const lock_answer& result) {
    auto event =
        result.value
            ? event_of(event_kind::acquired, *result.value->of, result.value->of->granted_at)
            : hold_event{
                  {.kind = end_of_call(result.failed), .name = leaver.keys->name, .lock_kind = leaver.keys->of.name}};
    event.content.waiters = leaver.seat.ahead;
    return event;
  });
}

}  // namespace holdfast::detail
