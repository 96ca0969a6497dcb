// SPDX-License-Identifier: BSL-1.0
#include "sync/name.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <new>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/line/discipline.hpp"
#include "sync/line/reentry.hpp"
#include "sync/note/grant_notes.hpp"

namespace holdfast::detail {
namespace {

constexpr auto* not_reentrant = "its owner holds it, and it is not re-entrant";
constexpr auto* no_upgrade = "its owner reads it, and two readers that upgrade would wait for each other";

/// The event of an answer without a lease.
auto failed_at(const lock_keys& keys) {
  return [&keys](const lock_answer& answer) {
    return hold_event{{.kind = end_of_call(answer.failed), .name = keys.name, .lock_kind = keys.of.name}};
  };
}

}  // namespace

hold* name::live_hold() {
  const auto live = std::find_if(holds_.begin(), holds_.end(), [](const hold& each) { return !each.ended(); });
  return live == holds_.end() ? nullptr : &*live;
}

hold* name::barring_hold() {
  const auto bars = std::find_if(holds_.begin(), holds_.end(),
                                 [](const hold& each) { return !each.ended() && each.keys()->of.bars; });
  return bars == holds_.end() ? nullptr : &*bars;
}

hold* name::hold_of(owner_id owner) {
  // A live hold goes before a lost one: the owner may have locked again after the loss.
  hold* mine = nullptr;
  for (auto& each : holds_)
    if (each.held_by(owner) && (!mine || !each.ended())) mine = &each;
  return mine;
}

bool name::untouched() {
  if (live_hold()) return false;
  return !line_ || line_->empty();
}

bool name::held_here() const {
  return std::any_of(holds_.begin(), holds_.end(), [](const hold& each) { return !each.ended(); });
}

// A part of lock_any() never nests, but its hold is one for others to nest in.
bool name::may_nest(const lock_request& request) const {
  return request.bound && keys_->of.nested != kind::nesting::anew;
}

bool name::held_by(owner_id owner) {
  const auto* const mine = hold_of(owner);
  return mine && !mine->ended();
}

// The hold that was broken may be of this client: its holder should know now, not at the next renewal.
void name::forced(bool was_held) {
  for (auto& held : holds_) {
    if (held.ended()) continue;
    // Even if Redis found no hold, ours must be confirmed: its key may be gone for another reason.
    if (was_held) held.forced();
    host_.parts.renewals.confirm_soon(*held.on, nanoseconds::zero());
  }
  wake();
}

// A wait with a deadline is not reported, nor is a wait for another coroutine. A caller that holds nothing that bars it
// waits for others.
void name::report_own_wait(acquisition& caller) {
  const auto& request = caller.request;
  if (request.bound || request.one_of_several || request.wait != lock_request::wait_mode::forever) return;
  // Without both coroutines the observer is only told that it may be so.
  bool known = false, perhaps = false;
  each_unbound_before(caller.keys->of, [&](const lease_record& lease) {
    known |= request.coroutine && lease.coroutine == request.coroutine;
    perhaps |= !request.coroutine || !lease.coroutine;
  });
  if (!known && !perhaps) return;
  env().report({.kind = known ? event_kind::waiting_for_ourselves : event_kind::perhaps_waiting_for_ourselves,
                .name = keys_->name});
  if (env().notices) env().notices->waits_for_own_hold(caller.noticed, caller.keys);
}

// The leases without a given or bound owner of all holds that a call of this kind waits for. Its own task may have one.
template <class Visitor>
void name::each_unbound_before(const kind& caller, Visitor visit) const {
  for (const auto& held : holds_) {
    if (held.ended() || !(caller.bars || held.keys()->of.bars)) continue;
    for (const auto* lease : held.leases())
      if (!lease->bound) visit(*lease);
  }
}

bool name::held_since(const kind& caller, time_point since) const {
  bool held = false;
  each_unbound_before(caller, [&](const lease_record& lease) { held |= lease.of->granted_at <= since; });
  return held;
}

// ---- a grant, and what is nested in it

std::shared_ptr<lease_record> name::hold_for(const lock_request& request, const shared_keys& keys,
                                             const owner_field& field, const attempt& grant, time_point now) {
  const auto& parts = host_.parts;
  auto& servers = parts.env.servers;
  boost::container::small_vector<node_id, 1> nodes{servers.node_of(keys_->lock)};
  // With several primaries each one has a share of the claim, and its index is its node.
  while (nodes.size() < servers.primaries()) nodes.push_back(static_cast<node_id>(nodes.size()));
  auto& pool = *parts.client->blocks;
  auto claimed = claim::make(parts.client, keys, field, nodes, vote_count::majority(nodes.size()));
  // Shares that were certainly not granted are denied from the beginning, so no renewal asks for them.
  claimed->begin_without(~grant.may_have_run);
  claimed->open = grant.reply.value.open && may_share(keys->of, request.asked);
  const hold_ptr made(new (pool) hold(std::move(claimed), request.owner, request.bound,
                                      {grant.reply.value.token, grant.reply.value.spare_tokens}, 0, now, parts, *this));
  auto lease = begin(made, [&] { return made->grant(request.owner, request.asked, grant.sent, now, grant.yes); });
  lease->note_caller(request.bound, request.coroutine);
  if (env().notes) env().notes->granted(*made->on, request.note, now);
  if (hand_over_.shared()) {
    const auto waiting = line_ && !line_->empty() ? line_->size() - first_asks().served_at_once(line_->size()) : 0;
    hand_over_.granted(*made->on, now, waiting);
  }
  // Waiters of the same owner need no turn of their own: they nest in the new hold.
  if (may_nest(request)) {
    move_to_hold_of(request, *made);
    // The first waiter may be of the same owner too. It re-enters when it tries.
    wake();
  }
  return lease;
}

// A hold whose first lease finds no memory has never been.
template <class First>
std::shared_ptr<lease_record> name::begin(const hold_ptr& next, First make_lease) {
  holds_.push_front(*next);
  try {
    auto lease = make_lease();
    if (host_.may_lock) host_.may_lock->add(next->owner);
    return lease;
  } catch (...) {
    holds_.erase(holds_.iterator_to(*next));
    next->leave_host();
    throw;
  }
}

void name::nest(hold& outer, const std::shared_ptr<acquisition>& caller) {
  if (!enter(outer, *caller)) reenter(outer, caller);
}

// Most nested calls have their lease at once. The others ask Redis, or fail.
bool name::enter(hold& outer, acquisition& caller) {
  const auto& row = caller.keys->of;
  const auto now = env().now();
  // A fenced caller needs a token, which a plain hold of the same key does not have.
  const bool may = !refusal_in(outer, row) && (!row.fenced() || outer.token()) && outer.count() < most_reentries;
  if (!may || !outer.covers(caller.request.asked, now)) return false;
  tell_entered(outer, caller, enter(outer, caller.request, now));
  return true;
}

std::shared_ptr<lease_record> name::enter(hold& open, const lock_request& request, time_point now) {
  auto lease = open.enter(request.owner, request.asked, now);
  lease->note_caller(request.bound, request.coroutine);
  return lease;
}

void name::tell_entered(hold& outer, acquisition& caller, std::shared_ptr<lease_record>&& lease) {
  caller.answer({{}, std::move(lease)},
                [&](const lock_answer&) { return event_of(event_kind::reentered, outer, outer.time().now()); });
}

// Decision: callers of one client join the newest hold for a while. A grant that met no waiter leaves the lock open for
// more holders, and Redis would grant them all. The time is short, because a writer that comes meanwhile is seen by the
// next caller that asks. Each waiter of this line goes before a newcomer. The older holds are closed by then, or their
// end is their own.
bool name::let_join(acquisition& caller) {
  const auto& row = caller.keys->of;
  const auto& asked = caller.request.asked;
  if (!may_share(row, asked) || holds_.empty() || (line_ && !line_->empty())) return false;
  auto& newest = holds_.front();
  const auto now = env().now();
  const bool open = newest.on->open && &newest.keys()->of == &row && now - newest.granted_at <= row.joins;
  if (!open || !newest.covers(asked, now)) return false;
  tell_entered(newest, caller, enter(newest, caller.request, now));
  return true;
}

// A lease that shares a hold ends with it. A lease that is not renewed for good has an end of its own.
bool name::may_share(const kind& of, const terms& asked) noexcept {
  return of.joins > milliseconds::zero() && asked.renew && !asked.limited();
}

const char* name::refusal_in(const hold& outer, const kind& wanted) noexcept {
  if (wanted.nested != kind::nesting::enters) return not_reentrant;
  return wanted.bars && !outer.keys()->of.bars ? no_upgrade : nullptr;
}

// Waiters whose owner was granted the lock come here too. The granted caller is answered before them.
void name::reenter(hold& outer, std::shared_ptr<acquisition> caller) {
  if (const auto* const refused = refusal_in(outer, caller->keys->of))
    return caller->answer({failure{errc::already_held, refused}}, failed_at(*caller->keys));
  std::make_shared<reentry>(env(), *this, hold_ptr(&outer), std::move(caller))->begin();
}

void name::move_to_hold_of(const lock_request& request, hold& granted) {
  while (auto same = may_nest(request) && line_ ? line_->take_out_of(request.owner) : nullptr)
    move_to(granted, std::move(same));
}

// The hold stands, whatever becomes of the callers that would re-enter it. Nothing is thrown, even where their answer
// finds no memory either.
void name::move_to(hold& outer, std::shared_ptr<acquisition> caller) noexcept {
  try {
    return reenter(outer, caller);
  } catch (const std::bad_alloc&) {
  }
  try {
    if (caller->open()) caller->answer({redis::without_memory()}, failed_at(*caller->keys));
  } catch (const std::bad_alloc&) {
  }
}

void name::queue(std::shared_ptr<acquisition> caller) {
  // The caller comes back from a hold that has ended, and the client may have begun to close or drain meanwhile.
  const bool closed = host_.parts.closed();
  // A downgrade has made the next hold of this owner already. In the line the caller could be behind a waiter for this
  // hold.
  if (auto* const mine = outer_of(caller->request.owner); mine && !mine->ended() && !closed)
    return move_to(*mine, std::move(caller));
  if (!closed && !host_.refuses(caller->request.owner)) {
    if (host_.may_lock) host_.may_lock->waits(caller->request.owner, keys_->name);
    // Nobody but the caller would learn that there was no memory.
    if (!if_memory([&] { enter_line(caller); }) && caller->open())
      caller->answer({redis::without_memory()}, failed_at(*caller->keys));
    return;
  }
  caller->answer({failure{errc::shutting_down, closed ? "" : drained_without}}, failed_at(*caller->keys));
}

// The observer hears of two holds that follow each other. The new hold is made first, so that a draining client sees
// its owner hold all the time.
std::shared_ptr<lease_record> name::downgraded(lease_record& write, const shared_keys& reader, const outcome& answer,
                                               time_point now) {
  const visit here(*this);
  const auto& parts = host_.parts;
  auto& before = *write.of;
  const auto node = parts.env.servers.node_of(keys_->lock);
  const hold_ptr next(new (*parts.client->blocks)
                          hold(claim::make(parts.client, reader, before.field(), {&node, 1}, 1), write.owner,
                               before.bound(), {}, before.passes + 1, now, parts, *this));
  auto lease = begin(next, [&] { return next->grant(write.owner, write.asked, answer.sent, now, answer.yes); });
  lease->note_caller(write.bound, write.coroutine);
  // The read hold stands from here on, so nothing is thrown.
  if_memory([&] { before.report(event_kind::released); });
  if_memory([&] { next->report(event_kind::acquired); });
  hand_over_.lost(*before.on);
  if_memory([&] { before.replaced(write); });
  // Readers of this client have asked nobody while it was writing.
  wake();
  return lease;
}

// ---- the end of a hold

bool name::pass_on(hold& before, const handoff_offer& offer) {
  const visit here(*this);
  // Nobody has waited for this name, so the claim is released as usual.
  if (!hand_over_.shared()) return false;
  const auto now = env().now();
  const auto* const successor = hand_over_.successor(before, offer, line_.get(), now, env().settings.drift);
  if (!successor) {
    hand_over_.release_begins(*before.on, now);
    return false;
  }
  // A copy: the successor leaves the line before its request is used for the last time.
  const auto request = successor->request;
  std::shared_ptr<lease_record> lease;
  try {
    lease = take_over(before, *successor, now);
  } catch (const std::bad_alloc&) {
    // Without memory for the new hold the claim is released, and the line asks Redis again.
    hand_over_.release_begins(*before.on, now);
    return false;
  }
  hand_over_.passed(*before.on);
  report_pass(before, offer.ttl, now);
  move_to_hold_of(request, *lease->of);
  line_->rules.inherited(now);
  finish(line_->first(), {{}, std::move(lease)});
  if (may_nest(request)) wake();
  return true;
}

std::shared_ptr<lease_record> name::take_over(hold& before, const acquisition& successor, time_point now) {
  const auto& request = successor.request;
  // The grant has reserved a block of tokens for successors, so no command is needed.
  const auto token = successor.keys->of.fenced() ? before.next_token() : hold::fencing();
  const hold_ptr next(new (*host_.parts.client->blocks) hold(before.on, request.owner, request.bound, token,
                                                             before.passes + 1, now, host_.parts, *this));
  auto lease = begin(next, [&] { return next->take_over(request.asked, now); });
  lease->note_caller(request.bound, request.coroutine);
  if (env().notes) env().notes->granted(*next->on, request.note, now);
  return lease;
}

void name::report_pass(const hold& before, milliseconds ttl, time_point now) const {
  if (!env().settings.observer) return;
  auto passed = event_of(event_kind::passed, before, now);
  passed.content.ttl = ttl;
  env().report(std::move(passed));
}

// Nobody publishes the loss of a hold, so the line of this client is woken here.
void name::ended(hold& over) {
  const visit here(*this);
  const bool lost = over.state() == lease_state::lost;
  if (lost) hand_over_.lost(*over.on);
  each_step step;
  step([&] {
    if (host_.may_lock) over.each_owner([this](owner_id owner) { host_.hold_is_over(owner); });
  });
  if (lost) {
    step([&] { wake(); });
    step([&] { end_lingering(); });
  }
  step.rethrow();
}

void name::came(owner_id owner) {
  if (host_.may_lock) host_.may_lock->add(owner);
}

void name::left(owner_id owner) {
  const visit here(*this);
  if (host_.may_lock) host_.hold_is_over(owner);
}

void name::forget(hold& over) {
  const visit here(*this);
  HOLDFAST_ASSERT(over.of_host.is_linked());
  holds_.erase(holds_.iterator_to(over));
  // A change under way still needs its hold until the server answers. The host keeps it until end_changes().
  if (host_.parts.closed() && over.changing()) host_.changing.emplace_back(&over);
}

// ---- turns

void name::share() {
  // The queue in Redis has the order of all waiters, so no client leaves the lock to others.
  if (hand_over_.shared() || keys_->of.ordered()) return;
  hand_over_.share(env(), keys_->of);
  for (const auto& each : holds_)
    if (!each.ended()) hand_over_.serve(*each.on, {each.granted_at});
}

nanoseconds name::found_busy(const acquire_answer& busy) {
  // Somebody elsewhere has the lock, so this name is contended.
  share();
  const auto may_last = busy.holder_ttl ? nanoseconds(*busy.holder_ttl) : nanoseconds::max();
  return hand_over_.found_busy(env().time, busy.barging, may_last);
}

void name::end_turn(const release_end& end) {
  // Subscribers elsewhere wait for this name, even if nobody waits here.
  if (end.heard_by > 0 && !host_.parts.closed()) share();
  // The queue has the order of the clients, so none of them leaves the lock to others.
  if (keys_->of.queue) return;
  hand_over_.release_ends(env().time, end.heard_by, line_.get(), when_cool());
}

// A cool-down may be extended while it runs.
timer_queue::action name::when_cool() {
  return [this] {
    const visit here(*this);
    if (!hand_over_.cool_down(env().now(), when_cool())) end_lingering();
  };
}

// ---- releases, and the end of the name

void name::give_back(const shared_keys& keys, const owner_field& field, milliseconds ttl, function<void()> tried,
                     primary_set at) {
  host_.parts.freeing.release_in_background(*this, keys, field, ttl, std::move(tried), at);
}

void name::release_ends(const release_end& end) {
  HOLDFAST_ASSERT(releasing_ > 0);
  const visit here(*this);
  // The end of a release must be counted even without memory, or the name would stay. So each step may fail by itself.
  if_memory([&] {
    if (end.ends_turn) end_turn(end);
  });
  if (keys_->of.ordered()) {
    freed(end);
  } else {
    if (end.may_be_free && line_) act(line_->rules.released(end.heard_by, conditions()));
    if (!held_here() && !hand_over_.cools_down()) end_lingering();
  }
  if (--releasing_ == 0) hand_over_.all_released();
}

departure name::departs(const lock_keys& keys, bool of_hold) {
  if (!line_) return {.leave = true};
  const auto at = conditions();
  return line_->rules.departs(keys.of, of_hold, at.first);
}

bool name::keeps_place(const lock_keys& keys) const {
  return line_ && !line_->empty() && &line_->first().keys->of == &keys.of;
}

void name::leave_visit() noexcept {
  HOLDFAST_ASSERT(visits_ > 0);
  // The calls that this brings are visits inside this one.
  if (visits_ == 1 && line_ && line_->places) tend_places();
  if (--visits_ > 0) return;
  if (line_ && line_->over()) line_.reset();
  if (!line_ && holds_.empty() && releasing_ == 0 && !hand_over_.cools_down()) host_.unused(*this);
}

void name::close() {
  const visit here(*this);
  // The waiters were answered before. Without a line, no ending hold can wake it or pass on to it.
  if (line_ && line_->places) {
    line_->places->stop();
    leave_places(*line_->places);
  }
  line_.reset();
  hand_over_.end();
  while (!holds_.empty()) take_out_first()->leave_host();
}

void name::take_apart() {
  while (!holds_.empty()) {
    const auto first = take_out_first();
    first->forget_changes();
    first->leave_host();
  }
}

hold_ptr name::take_out_first() {
  hold_ptr first(&holds_.front());
  holds_.pop_front();
  return first;
}

}  // namespace holdfast::detail
