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

namespace holdfast::detail {

hold::hold(claim_ptr claimed, owner_id owner, bool bound, fencing fenced, std::uint32_t times_passed, time_point now,
           const engine_parts& parts, hold_host& host)
    : passes(times_passed), on(std::move(claimed)), owner(owner), granted_at(now), parts_(parts), host_(&host),
      token_(fenced.token.value_or(0)),
      packed_{.spare_tokens = fenced.spare, .bound = bound, .fenced = fenced.token.has_value()} {
  on->hand_to(this);
}

hold::~hold() { HOLDFAST_ASSERT(!host_); }

void hold::operator delete(hold* ended, std::destroying_delete_t) noexcept {
  auto& pool = *ended->on->client().blocks;  // its block keeps it alive
  ended->~hold();
  pool.give_back(ended, sizeof(hold));
}

// ---- what it is

nanoseconds hold::left() const noexcept { return ended() ? nanoseconds() : on->left(); }

lease_state hold::state() const noexcept {
  if (exclusive()) return on->suspended() ? lease_state::suspended : lease_state::held;
  // Released meanwhile, perhaps: then that ended it.
  return packed_.end.load(std::memory_order_acquire) == lease_state::released ? lease_state::released
                                                                              : lease_state::lost;
}

std::string hold::cause_of_loss() const {
  if (packed_.end.load(std::memory_order_acquire) == lease_state::lost) return end_detail();
  return std::string(text_of_expiry(renewal_paused()));
}

const std::string& hold::end_detail() const noexcept {
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

std::shared_ptr<lease_record> hold::make_lease(const terms& asked, time_point now) {
  auto lease = make_pooled<lease_record>(parts_.env.blocks, self(), asked, now, parts_.leases_home.lock());
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

void hold::tell_wishes() noexcept {
  if (on->holder() != this) return;
  claim::wishes all;
  for (const auto* lease : leases_.all()) {
    all.ttl = std::max(all.ttl, lease->asked.ttl);
    all.min_replicas = std::max(all.min_replicas, lease->asked.min_replicas);
    all.for_good |= lease->asked.renew && !lease->asked.max_hold;
  }
  if (all.for_good && renewal_paused()) resume_renewal();
  on->wanted = all;
}

std::shared_ptr<lease_record> hold::grant(const terms& asked, time_point sent, time_point now, primary_set at) {
  auto lease = make_lease(asked, now);
  try {
    confirm(sent, asked.ttl, at);
    parts_.renewals.guard(*on, sent, now, at);
    parts_.watch_links();
  } catch (...) {
    remove(*lease);
    throw;
  }
  return lease;
}

std::shared_ptr<lease_record> hold::take_over(const terms& asked, time_point now) {
  auto lease = make_lease(asked, now);
  try {
    parts_.renewals.guard_on(*on, now);
    set_hold_count(parts_, *on, in_question::count);
  } catch (...) {
    remove(*lease);
    throw;
  }
  return lease;
}

bool hold::covers(const terms& asked, time_point now) const noexcept {
  if (leases_.empty() || !unquestioned() || asked.min_replicas > min_replicas()) return false;
  if (!asked.renew) return asked.ttl <= left();
  const bool renewed = wants_renewal(now) && !renewal_paused();
  return renewed && asked.ttl <= ttl() && left() >= 2 * nanoseconds(asked.ttl) / 3;
}

std::shared_ptr<lease_record> hold::enter(const terms& asked, time_point now) {
  auto lease = make_lease(asked, now);
  try {
    set_hold_count(parts_, *on, in_question::claim);
  } catch (...) {
    remove(*lease);
    throw;
  }
  return lease;
}

void hold::hear_of(std::size_t primary, const late_vote& late, milliseconds ttl) {
  if (ended()) return;  // it was given back there too
  if (late.cast == vote::yes) {
    confirm(late.sent, ttl, only(primary));
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

// It may have waited to be written until nobody wanted the hold to be renewed any more.
void hold::confirmed_by_count(time_point sent, milliseconds ttl, primary_set at) {
  if (!unquestioned() || min_replicas() > 0) return;
  const auto from = std::min(sent, renewed_until());
  confirm(from, ttl, at);
  parts_.renewals.guard(*on, sent, parts_.env.now(), at);
}

void hold::renew(std::shared_ptr<lease_record> lease, milliseconds ttl, time_point answer_by, done_handler done) {
  if (!live()) return done(end_reason(), end_detail());
  if (ttl == milliseconds::zero()) ttl = lease->asked.ttl;
  auto send = [this, self = self(), ttl](time_point end, topology::handler then) {
    if (ended()) return then({errc::unconfirmed, {}});  // what it would raise may be another's
    send_until(parts_.env, end, keys()->of.renew.make_one(*keys(), ttl_to_send(ttl), field()), urgency::obligation,
               std::move(then));
  };
  auto answered = [this, self = self(), lease = std::move(lease), ttl,
                   done = parts_.calls.until_closed(errc::closed, std::move(done))](const outcome& reply) {
    const auto answer = keys()->of.renew.read(reply, 1);
    if (state() == lease_state::released) {
      if (auto* const next = on->holder(); next && !answer.failed) next->heed(answer.value[0]);
      return done(errc::not_held, {});
    }
    if (live() && !answer.failed) heed(answer.value[0]);
    if (!ended() && !answer.failed && !confirm(reply.sent, ttl, reply.yes)) lose(errc::lost);
    if (ended()) return done(end_reason(), end_detail());
    if (answer.failed) return done(answer.failed->code, answer.failed->detail);
    if (!lease->released.load(std::memory_order_acquire))
      parts_.renewals.guard(*on, reply.sent, parts_.env.now(), reply.yes);
    done({}, {});
  };
  topology::handler heard = std::move(answered);
  if (min_replicas() > 0) heard = when_replicated(std::move(heard));
  const auto left = std::max<nanoseconds>(answer_by - parts_.env.now(), nanoseconds(1));
  ask_twice(parts_.env, std::min(command_budget(parts_.env.settings, this->ttl()), left), std::move(send),
            std::move(heard));
}

// Of a renewal: it counts when enough replicas have it.
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
  const auto keep = self();
  changes_.ended();
  tell_count();
}

// Who re-enters, or waits for its turn to do so, tells the count by that.
void hold::tell_count() noexcept try {
  if (!ended() && !changing() && reentries_.empty()) set_hold_count(parts_, *on, in_question::count);
} catch (const std::bad_alloc&) {
  note_count(0);
}

void hold::count_elsewhere() noexcept {
  if (ended() || !on->counted.ever_sent) return;
  note_count(0);
  tell_count();
}

// A claim that was not confirmed, or that somebody may have broken, is nothing for another lease.
bool hold::unquestioned() const noexcept {
  return exclusive() && !on->suspended() && !packed_.forced && !on->in_doubt && !parts_.closed();
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
  const auto keep = self();
  lose(errc::closed);
  tell_reentries();
}

void hold::doubt(nanoseconds pause) {
  on->in_doubt = true;
  parts_.renewals.confirm_soon(*on, pause);
}

bool hold::client_closed() const noexcept { return parts_.closed(); }

void hold::end_by_loss(errc reason) {
  HOLDFAST_ASSERT(host_);
  if (parts_.closed()) reason = errc::closed;
  const auto& env = parts_.env;
  const auto now = env.now();
  const loss_facts loss{reason, now >= valid_until(), packed_.shared, packed_.forced, renewal_paused()};
  const auto may_live = std::max(leases_.empty() ? env.settings.ttl : ttl(), on->may_live(now, env.settings.drift));
  end(lease_state::lost, reason, text_of(loss));
  // The hold is lost, even if one of these steps finds no memory.
  if_memory([this] { parts_.watch_links(); });
  if_memory([&] {
    report(reason == errc::closed ? event_kind::closed : event_kind::lost, reason, end_detail(), cause_of(loss));
  });
  for (auto* lease : leases_.all()) if_memory([&] { lease->tell_end(reason); });
  // Redis keeps an expired key a little longer than we trust it, or for long if it was renewed without our hearing of
  // it.
  // A minority of several primaries may have a field that a majority has not. Its field among others would keep the key
  // from becoming free.
  if (loss.expired || parts_.closed() || keys()->of.voted || packed_.shared)
    if_memory([&] {
      parts_.freeing.release_in_background(*host_, keys(), field(), may_live, {},
                                           packed_.shared ? everywhere : on->may_be_at());
    });
  else
    parts_.freeing.found_gone(keys(), field(), may_live, now);
  if_memory([this] { host_->ended(*this); });
}

void hold::end(lease_state as, errc reason, text detail) noexcept {
  HOLDFAST_ASSERT(!ended() && (as == lease_state::lost || as == lease_state::released));
  packed_.end_reason = reason;
  end_detail_ = std::move(detail);
  parts_.renewals.forget(*on);
  packed_.end.store(as, std::memory_order_release);
  if (on->holder() == this) on->hand_to(nullptr);
}

void hold::tell_reentries() {
  while (!reentries_.empty()) reentries_.front().hold_ended();
}

void hold::leave_if_forgotten() {
  HOLDFAST_ASSERT(ended());
  if (!leases_.empty() || !host_) return;
  tell_reentries();
  const auto last = no_more_kept();
  if (auto* const host = std::exchange(host_, nullptr)) host->forget(*this);  // one of them has ended a change
}

void hold::leave_host() noexcept {
  const auto last = no_more_kept();
  if (on->holder() == this) {
    parts_.renewals.forget(*on);
    on->hand_to(nullptr);
  }
  host_ = nullptr;
}

// A queued change and its hold refer to each other, and the command before the change may never be answered.
void hold::forget_changes() noexcept {
  while (!reentries_.empty()) reentries_.front().forget_caller();
  changes_.forget();
  last_unlocks_.clear();
}

// Empty where there is no memory for the text: the loss itself must be told.
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
