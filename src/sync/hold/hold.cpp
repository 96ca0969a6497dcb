// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/hold.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "sync/command/ask_twice.hpp"
#include "sync/command/script_command.hpp"
#include "sync/command/send_once.hpp"
#include "sync/hold/engine_parts.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/hold/loss.hpp"
#include "sync/hold/set_hold_count.hpp"
#include "sync/note/grant_notes.hpp"

namespace holdfast::detail {

// The steps of a hold, between two calls. unlocking.hpp says how an unlock moves a hold from step to step.
//
//   step       leases  host_  ended()   what moves it on
//   made       none    yes    no        grant() or take_over() → held; leave_host() without memory → destroyed. Only
//                                       inside one call of its name
//   held       some    yes    no        the last unlock → released, or → unlocking while a change runs; lose() → lost;
//                                       replaced() → released
//   unlocking  none    yes    no        a re-entry that is granted → held; the turn of the unlock → released;
//                                       lose() → lost
//   released   none    null   released  nothing: it lives while a caller or an answer refers to it
//   lost       some    yes    lost      the unlock of each lease; after the last one the host forgets it
//   lost       none    null   lost      nothing, as released
//
// When the client ends, leave_host() takes the host of a hold at any step. Its leases may outlive the client.
//
//   flag                 made  held  unlocking  released  lost  moved by
//   on->holder()==this   yes   yes   yes        no        no    set by the constructor, cleared by end(), leave_host()
//   packed_.kept         no    old   yes        no        old   set by the last unlock, cleared when the host forgets
//   changes_.busy()      no    yes   yes        no        yes   begin_change() and end_change()
//   last_unlocks_        none  any   some       none      any   added by the last unlock while a change runs; taken at
//                                                               its turn, or by the release before it
//   reentries_           none  any   any        none      none  add(); the end takes all of them out
//   renewal_paused       no    yes   old        old       old   set by the watchdog when max_hold is over; cleared by
//                                                               feed(), or by a lease that is renewed for good
//   forced               no    yes   yes        old       old   set by forced(), never cleared
//   shared               no    no    no         no        yes   set by denied(), and the loss follows in the same call
//   half_done            no    no    no         no        yes   set by lose_downgraded(), and the loss follows as above
//   downgrading          no    yes   yes        old       old   set by begin_downgrade(), cleared by no_downgrade()
//   end_reason           none  none  none       not_held  any   set by end(), never changed afterwards
//   end_detail_          none  none  none       none      any   as end_reason; none where there is no memory for it
//
// A validity that has just run out moves nothing by itself: state() says lost, ended() says no. live(), an unlock or
// the watchdog's alarm makes it the step lost.

hold::hold(claim_ptr claimed, owner_id owner, bool bound, fencing fenced, std::uint32_t times_passed, time_point now,
           const engine_parts& parts, hold_host& host)
    : passes(times_passed), on(std::move(claimed)), owner(owner), granted_at(now), parts_(parts), host_(&host),
      token_(fenced.token.value_or(0)),
      packed_{.spare_tokens = fenced.spare, .bound = bound, .fenced = fenced.token.has_value()} {
  on->hand_to(this);
}

// The host knows a hold by its address alone, so it must have forgotten the hold by now.
hold::~hold() { HOLDFAST_ASSERT(!host_); }

void hold::operator delete(hold* ended, std::destroying_delete_t) noexcept {
  auto& pool = *ended->on->client().blocks;  // its block keeps it alive
  ended->~hold();
  pool.give_back(ended, sizeof(hold));
}

// ---- the state

nanoseconds hold::left() const noexcept { return ended() ? nanoseconds() : on->left(); }

lease_state hold::state() const noexcept {
  if (exclusive()) return on->suspended() ? lease_state::suspended : lease_state::held;
  // A release makes left() zero as well. The end says whether it was a release or a loss.
  return packed_.end.load(std::memory_order_acquire) == lease_state::released ? lease_state::released
                                                                              : lease_state::lost;
}

std::string hold::cause_of_loss() const {
  // Any thread may see the validity over before the strand ends the hold. Then the text follows from the clock.
  if (packed_.end.load(std::memory_order_acquire) == lease_state::lost) return end_detail();
  return std::string(text_of_expiry(renewal_paused()));
}

const std::string& hold::end_detail() const noexcept {
  // Most holds have no text, so a null pointer stands for it. Callers still get a reference.
  static const std::string none;
  return end_detail_ ? *end_detail_ : none;
}

bool hold::ended() const noexcept { return packed_.end.load(std::memory_order_acquire) != lease_state::held; }

milliseconds hold::ttl() const noexcept {
  milliseconds longest{};
  for (const auto* lease : leases_.all()) longest = std::max<milliseconds>(longest, lease->asked.ttl);
  return longest;
}

milliseconds hold::ttl_to_keep() const noexcept {
  const bool renewed = wants_renewal(parts_.env.now()) && !renewal_paused();
  // A count may raise the TTL only where a renewal would: the hold is renewed now, and no replicas must confirm it.
  return renewed && min_replicas() == 0 ? ttl() : ttl_that_never_raises;
}

unsigned hold::min_replicas() const noexcept {
  unsigned most = 0;
  for (const auto* lease : leases_.all()) most = std::max<unsigned>(most, lease->asked.min_replicas);
  return most;
}

time_point hold::renewed_until() const noexcept {
  time_point last{};
  for (const auto* lease : leases_.all()) last = std::max(last, lease->renewed_until());
  return last;
}

// ---- leases

owner_id hold::owner_of(const lease_record& lease) noexcept { return lease.owner; }

bool hold::held_by(owner_id by) const noexcept { return joinable() ? count_of(by) > 0 : owner == by; }

std::size_t hold::count_of(owner_id by) const noexcept {
  const auto leases = leases_.all();
  return static_cast<std::size_t>(
      std::count_if(leases.begin(), leases.end(), [&](const lease_record* lease) { return lease->owner == by; }));
}

// A hold without a lease counts for the owner of its last one, until it ends or gets another lease.
void hold::tell_owner(owner_id by) {
  if (!joinable()) return;
  const bool alone = count() == 1;
  if (alone && by == owner) return;
  host_->came(by);
  if (alone) host_->left(std::exchange(owner, by));
}

std::shared_ptr<lease_record> hold::make_lease(owner_id by, const terms& asked, time_point now) {
  auto lease = make_pooled<lease_record>(parts_.env.blocks, self(), by, asked, now, parts_.leases_home.lock());
  add(*lease);
  return lease;
}

void hold::add(lease_record& lease) {
  leases_.add(lease);
  tell_wishes();
}

void hold::remove(const lease_record& lease) noexcept {
  leases_.remove(lease);
  tell_wishes();
}

// The watchdog reads the claim alone at a renewal, so the wishes are copied there whenever the leases change.
void hold::tell_wishes() noexcept {
  // A hold that has ended speaks for its claim no more: the claim has no holder, or the next one.
  if (on->holder() != this) return;
  claim::wishes all;
  for (const auto* lease : leases_.all()) {
    all.ttl = std::max(all.ttl, lease->asked.ttl);
    all.min_replicas = std::max(all.min_replicas, lease->asked.min_replicas);
    all.for_good |= lease->asked.renew && !lease->asked.limited();
  }
  // The watchdog asks no holder about a claim that is renewed for good, so nobody else would end the pause.
  if (all.for_good && renewal_paused()) resume_renewal();
  on->wanted = all;
}

std::shared_ptr<lease_record> hold::grant(owner_id by, const terms& asked, time_point sent, time_point now,
                                          primary_set at) {
  auto lease = make_lease(by, asked, now);
  try {
    confirm(sent, asked.ttl, at);
    parts_.renewals.guard(*on, sent, now, at);
    tell_owner(by);
  } catch (...) {
    // The caller gets no lease, so nobody would ever unlock this one.
    remove(*lease);
    throw;
  }
  return lease;
}

std::shared_ptr<lease_record> hold::take_over(const terms& asked, time_point now) {
  auto lease = make_lease(owner, asked, now);
  try {
    // The last unlock of the hold before has made the watchdog forget the claim. Redis may still have the count of that
    // hold, or one that was not answered.
    parts_.renewals.guard_on(*on, now);
    set_hold_count(parts_, *on, in_question::count);
  } catch (...) {
    remove(*lease);
    throw;
  }
  return lease;
}

bool hold::covers(const terms& asked, time_point now) const noexcept {
  // Without a lease the release may be sent any moment. More replicas than before must be asked for.
  if (leases_.empty() || !unquestioned() || asked.min_replicas > min_replicas()) return false;
  // A lease that nobody renews must be valid for its whole TTL already. A hold that is renewed in time always has two
  // thirds of its TTL; with less, Redis is late, and is asked.
  if (!asked.renew) return asked.ttl <= left();
  const bool renewed = wants_renewal(now) && !renewal_paused();
  return renewed && asked.ttl <= ttl() && left() >= 2 * nanoseconds(asked.ttl) / 3;
}

// The lock may be broken in Redis without our knowledge. The count asks afterwards, so a loss shows a round trip later.
std::shared_ptr<lease_record> hold::enter(owner_id by, const terms& asked, time_point now) {
  auto lease = make_lease(by, asked, now);
  try {
    set_hold_count(parts_, *on, in_question::claim);
    tell_owner(by);
  } catch (...) {
    remove(*lease);
    throw;
  }
  return lease;
}

void hold::hear_of(std::size_t primary, const late_vote& late, milliseconds ttl) {
  // The release goes to every primary that may have the field, also to this one.
  if (ended()) return;
  if (late.cast == vote::yes) {
    confirm(late.sent, ttl, only(primary));
    // After the last unlock the watchdog has forgotten the claim. Guarding it again would renew a released key.
    if (live() && !leases_.empty()) parts_.renewals.guard(*on, late.sent, parts_.env.now(), only(primary));
  } else if (late.cast == vote::no || late.never) {
    parts_.renewals.denied(on->shares()[primary]);
  }
}

bool hold::confirm(time_point sent, milliseconds ttl, primary_set at) {
  return on->confirm(at, detail::valid_until(sent, ttl, parts_.env.settings.drift));
}

key_ttl hold::ttl_to_send(milliseconds wanted) {
  return on->ttl_to_send(wanted, parts_.env.now(), parts_.env.settings.drift);
}

// Decision: a count confirms a claim like a renewal, because its script checks the field. There are two exceptions.
// A count that was sent before a doubt proves nothing about it. And a count does not ask the replicas.
void hold::confirmed_by_count(time_point sent, milliseconds ttl, primary_set at) {
  if (!unquestioned() || min_replicas() > 0) return;
  // The count may have waited to be written until max_hold was over. The hold still ends one TTL after its max_hold.
  const auto from = std::min(sent, renewed_until());
  confirm(from, ttl, at);
  parts_.renewals.guard(*on, sent, parts_.env.now(), at);
}

void hold::renew(std::shared_ptr<lease_record> lease, milliseconds ttl, time_point answer_by, done_handler done) {
  if (!live()) return done(end_cause());
  if (downgrading()) return answer_after_downgrade(std::move(done));
  if (ttl == milliseconds::zero()) ttl = lease->asked.ttl;
  auto send = [this, self = self(), ttl](time_point end, topology::handler then) {
    // The field may belong to the next hold by now. A second copy would raise the TTL of that one.
    if (ended()) return then({errc::unconfirmed, {}});
    send_until(parts_.env, end, keys()->of.renew.make_one(*keys(), ttl_to_send(ttl), field()), urgency::obligation,
               std::move(then));
  };
  auto answered = [this, self = self(), lease = std::move(lease), ttl,
                   done = parts_.calls.until_closed(errc::closed, std::move(done))](const outcome& reply) mutable {
    const auto answer = keys()->of.renew.read(reply, 1);
    // The unlock came first. The answer still says something about the claim, which the next hold may have.
    if (state() == lease_state::released) {
      if (auto* const next = on->holder(); next && !answer.failed) next->heed(answer.value[0]);
      return done(failure{errc::not_held, {}});
    }
    if (downgrading()) return answer_after_downgrade(std::move(done));
    // The answer may end the hold, or come after its end. The caller then gets the reason of the end.
    if (live() && !answer.failed) heed(answer.value[0]);
    if (!ended() && !answer.failed && !confirm(reply.sent, ttl, reply.yes)) lose(errc::lost);
    if (ended()) return done(end_cause());
    if (answer.failed) return done(answer.failed);
    // Another thread may have unlocked this lease meanwhile. Then nothing is planned for its sake.
    if (!lease->released.load(std::memory_order_acquire))
      parts_.renewals.guard(*on, reply.sent, parts_.env.now(), reply.yes);
    done(std::nullopt);
  };
  topology::handler heard = std::move(answered);
  if (min_replicas() > 0) heard = when_replicated(std::move(heard));
  const auto left = std::max<nanoseconds>(answer_by - parts_.env.now(), nanoseconds(1));
  ask_twice(parts_.env, std::min(command_budget(parts_.env.settings, this->ttl()), left), std::move(send),
            std::move(heard));
}

// A downgrade ends the hold, unless its command has not run. Then the hold is confirmed at once, and the renewal counts
// as unanswered.
void hold::answer_after_downgrade(done_handler done) {
  begin_change([this, self = self(), done = parts_.calls.until_closed(errc::closed, std::move(done))] {
    each_step step;
    step([&] { done(live() ? failure{errc::unreachable, {}} : end_cause()); });
    step([&] { end_change(); });
    step.rethrow();
  });
}

// A renewal counts when enough replicas have it: the validity may not outlast a failover to one of them. Denials and
// failures need no replicas, and are passed on at once.
topology::handler hold::when_replicated(topology::handler then) {
  return [this, self = self(), then = std::move(then)](const outcome& reply) mutable {
    const auto answer = keys()->of.renew.read(reply, 1);
    if (answer.failed || answer.value[0] != renewal_answer::confirmed || ended()) return then(reply);
    auto counted = [reply, then = std::move(then)](const std::optional<redis::failure>& too_few) {
      then(too_few ? outcome{too_few->code, {}, too_few->detail} : reply);
    };
    parts_.env.when_replicated(keys()->lock, min_replicas(), reply.server, valid_until(), std::move(counted));
  };
}

// ---- the count

void hold::end_change() {
  // The next change may be the last one, and its end may drop the last reference.
  const auto keep = self();
  changes_.ended();
  tell_count();
}

// A re-entry that runs or waits will send the count itself. Without memory the count is unknown, and the next change
// sends it.
void hold::tell_count() noexcept try {
  if (!ended() && !changing() && reentries_.empty()) set_hold_count(parts_, *on, in_question::count);
} catch (const std::bad_alloc&) {
  note_count(0);
}

void hold::count_elsewhere() noexcept {
  // A count that was never sent is 1 at each server: the acquire has set it.
  if (ended() || !on->counted.ever_sent) return;
  note_count(0);
  tell_count();
}

// No other lease or hold gets a claim that is not confirmed now, or that another client may have broken. Its owner
// would start work that may not be exclusive.
bool hold::unquestioned() const noexcept {
  return exclusive() && !on->suspended() && !packed_.forced && !on->in_doubt && !parts_.closed();
}

// ---- a downgrade

void hold::begin_downgrade() {
  on->in_doubt = true;
  packed_.downgrading = true;
  parts_.renewals.forget(*on);
}

void hold::no_downgrade() {
  packed_.downgrading = false;
  if (ended() || leases_.empty()) return;
  parts_.renewals.guard_on(*on, parts_.env.now());
  parts_.renewals.confirm_soon(*on, nanoseconds::zero());
}

void hold::lose_downgraded() {
  packed_.half_done = true;
  lose(errc::lost);
}

void hold::replaced(lease_record& lease) {
  const auto keep = self();
  remove(lease);
  end(lease_state::released, errc::not_held, {});
  each_step step;
  step([&] { lease.tell_end(errc::not_held); });
  step([this] { host_->ended(*this); });
  step([this] { leave_if_forgotten(); });
  step.rethrow();
}

// ---- the end

bool hold::live() {
  if (!ended() && !exclusive()) lose(errc::lost);
  return !ended();
}

void hold::lose(errc reason) {
  if (ended()) return;
  const auto keep = self();
  end_by_loss(reason);
  // Re-entries and the host are notified of the loss even if one of them finds no memory.
  each_step step;
  step([this] { tell_reentries(); });
  step([this] { leave_if_forgotten(); });
  step.rethrow();
}

void hold::heed(renewal_answer answer) {
  if (answer == renewal_answer::confirmed) return;
  denied(answer);
  lose(errc::lost);
}

void hold::close() {
  lose(errc::closed);
  // lose() does nothing when the hold ended before. Its re-entries are notified all the same.
  tell_reentries();
}

void hold::doubt(nanoseconds pause) {
  // Anybody may publish on the channel, so a message alone ends nothing. A renewal asks Redis.
  on->in_doubt = true;
  parts_.renewals.confirm_soon(*on, pause);
}

bool hold::client_closed() const noexcept { return parts_.closed(); }

void hold::end_by_loss(errc reason) {
  HOLDFAST_ASSERT(host_);
  // close() has ended every validity already, so the loss has no other cause that a holder could see.
  if (parts_.closed()) reason = errc::closed;
  const auto& env = parts_.env;
  const auto now = env.now();
  const loss_facts loss{reason,         now >= valid_until(), packed_.shared,
                        packed_.forced, renewal_paused(),     packed_.half_done};
  // A renewal that was not answered may have raised the TTL. The release must go on until the key is gone.
  const auto may_live = std::max(leases_.empty() ? env.settings.ttl : ttl(), on->may_live(now, env.settings.drift));
  end(lease_state::lost, reason, text_of(loss));
  // The hold is lost, even if one of these steps finds no memory.
  if_memory([this] { parts_.renewals.end_watch_if_idle(); });
  if_memory([&] {
    report(reason == errc::closed ? event_kind::closed : event_kind::lost, reason, end_detail(), cause_of(loss));
  });
  for (auto* lease : leases_.all()) if_memory([&] { lease->tell_end(reason); });
  // Redis keeps a key a little longer than we trust it, and much longer when the answer to a renewal was lost.
  // A minority of several primaries may have a field that the majority denies. A field among others keeps the key from
  // becoming free. Of several permits only some may be gone. A downgrade may not have run. In all these cases the field
  // is released, though the hold is lost.
  if (loss.expired || parts_.closed() || keys()->of.voted || packed_.shared || loss.half_done || field().amount() > 1)
    if_memory([&] {
      parts_.freeing.release_in_background(*host_, keys(), field(), may_live, {},
                                           packed_.shared ? everywhere : on->may_be_at());
    });
  else
    // Redis has answered that the field is gone. A server that takes over after a failover may still have it.
    parts_.freeing.found_gone(keys(), field(), may_live, now);
  if_memory([this] { host_->ended(*this); });
}

void hold::end(lease_state as, errc reason, text detail) noexcept {
  HOLDFAST_ASSERT(!ended() && (as == lease_state::lost || as == lease_state::released));
  // cause_of_loss() reads the text on any thread, once it has seen the end. So the end is stored last.
  packed_.end_reason = reason;
  end_detail_ = std::move(detail);
  parts_.renewals.forget(*on);
  packed_.end.store(as, std::memory_order_release);
  // The watchdog asks the holder of each claim, so the claim was forgotten first.
  if (on->holder() == this) leave_claim();
}

void hold::tell_reentries() {
  // A re-entry may end others in its call. A loop over iterators would be invalid.
  while (!reentries_.empty()) take_out(reentries_.front())->hold_ended();
}

void hold::leave_if_forgotten() {
  HOLDFAST_ASSERT(ended());
  if (!leases_.empty() || !host_) return;
  tell_reentries();
  const auto last = no_more_kept();
  // A re-entry that was notified may have ended a change, and with it called this function already.
  if (auto* const host = std::exchange(host_, nullptr)) host->forget(*this);
}

void hold::leave_host() noexcept {
  const auto last = no_more_kept();
  if (on->holder() == this) {
    parts_.renewals.forget(*on);
    leave_claim();
  }
  host_ = nullptr;
}

void hold::leave_claim() noexcept {
  on->hand_to(nullptr);
  if (parts_.env.notes) parts_.env.notes->ended(*on);
}

// A queued change and its hold refer to each other, and the command under way may never be answered. Without this both
// would leak when the engine ends.
void hold::forget_changes() noexcept {
  while (!reentries_.empty()) take_out(reentries_.front())->forget_caller();
  changes_.forget();
  last_unlocks_.clear();
}

// The text is optional, the notification of the loss is not. Without memory the text is left out.
hold::text hold::text_of(const loss_facts& loss) const noexcept try {
  auto& servers = parts_.env.servers;
  const auto& key = keys()->lock;
  std::optional<std::string> trouble;
  if (tells_trouble(loss) && !servers.answering(key)) trouble = servers.trouble(key).detail;
  return std::make_unique<const std::string>(text_of_loss(loss, trouble));
} catch (const std::bad_alloc&) {
  return nullptr;
}

void hold::report(event_kind happened, error_code reason, std::string_view detail, loss_cause cause) const {
  const auto& env = parts_.env;
  // An event copies the name and asks the clock. Without an observer a pair of lock and unlock must not pay for that.
  if (!env.settings.observer) return;
  auto event = event_of(happened, *this, env.now());
  event.content.ttl = ttl();
  event.content.cause = cause;
  event.content.reason = reason;
  event.content.detail = detail;
  env.report(std::move(event));
}

hold_event event_of(event_kind kind, const hold& hold, time_point at) {
  const auto& keys = *hold.keys();
  return {{.kind = kind,
           .name = keys.name,
           .held = at - hold.granted_at,
           .owner = hold.owner,
           .token = hold.token(),
           .count = hold.count(),
           .lock_kind = keys.of.name},
          &hold.field(),
          hold.passes,
          at};
}

}  // namespace holdfast::detail
