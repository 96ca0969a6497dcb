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
#include "sync/hold/hold_services.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/hold/recount.hpp"

namespace holdfast::detail {
namespace {

constexpr const char* with_others = "its key has other fields besides: another kind of lock, or data, has its name";

const std::string& by_force() {
  static const std::string text =
      "Redis answered that its key is gone or another's, after force_unlock() by this client";
  return text;
}

}  // namespace

hold::hold(claim_ptr c, owner_id w, bool b, fencing t, std::uint32_t p, time_point now, const hold_services& with,
           hold_host& host)
    : bound(b), fenced_(t.token.has_value()), spare_tokens(t.spare), passes(p), on(std::move(c)), who(w),
      granted_at(now), token_(t.token.value_or(0)), with_(with), host_(&host) {
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
  return end_.load(std::memory_order_acquire) == lease_state::released ? lease_state::released : lease_state::lost;
}

std::string hold::cause_of_loss() const {
  if (end_.load(std::memory_order_acquire) == lease_state::lost) return end_detail();
  return renewal_paused() ? "its TTL was over, and nobody wanted it to be renewed"
                          : "its validity was over, and Redis had not confirmed it again";
}

const std::string& hold::end_detail() const noexcept {
  static const std::string none;
  return end_detail_ ? *end_detail_ : none;
}

bool hold::ended() const noexcept { return end_.load(std::memory_order_acquire) != lease_state::held; }

milliseconds hold::ttl() const noexcept {
  milliseconds longest{};
  for (const auto* l : leases_.all()) longest = std::max<milliseconds>(longest, l->asked.ttl);
  return longest;
}

milliseconds hold::ttl_to_keep() const noexcept {
  const bool renewed = wants_renewal(with_.around.now()) && !renewal_paused();
  return renewed && min_replicas() == 0 ? ttl() : ttl_that_never_raises;
}

unsigned hold::min_replicas() const noexcept {
  unsigned most = 0;
  for (const auto* l : leases_.all()) most = std::max<unsigned>(most, l->asked.min_replicas);
  return most;
}

time_point hold::renewed_until() const noexcept {
  time_point last{};
  for (const auto* l : leases_.all()) last = std::max(last, l->renewed_until());
  return last;
}

// ---- leases

std::shared_ptr<lease_record> hold::make_lease(const terms& asked, time_point now) {
  auto lease = make_pooled<lease_record>(with_.around.blocks, self(), asked, now, with_.leases_home.lock());
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
  for (const auto* l : leases_.all()) {
    all.ttl = std::max(all.ttl, l->asked.ttl);
    all.min_replicas = std::max(all.min_replicas, l->asked.min_replicas);
    all.for_good |= l->asked.renew && !l->asked.max_hold;
  }
  if (all.for_good && renewal_paused()) resume_renewal();
  on->wanted = all;
}

std::shared_ptr<lease_record> hold::grant(const terms& asked, time_point sent, time_point now, primary_set at) {
  auto lease = make_lease(asked, now);
  try {
    confirm(sent, asked.ttl, at);
    with_.renewals.guard(*on, sent, now, at);
    with_.watch_links();
  } catch (...) {
    remove(*lease);
    throw;
  }
  return lease;
}

std::shared_ptr<lease_record> hold::take_over(const terms& asked, time_point now) {
  auto lease = make_lease(asked, now);
  try {
    with_.renewals.guard_on(*on, now);
    recount(with_, *on, in_question::count);
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
    recount(with_, *on, in_question::claim);
  } catch (...) {
    remove(*lease);
    throw;
  }
  return lease;
}

void hold::hear_of(std::size_t primary, const late_ballot& what, milliseconds ttl) {
  if (ended()) return;  // it was given back there too
  if (what.said == ballot::yes) {
    confirm(what.sent, ttl, only(primary));
    if (live() && !leases_.empty()) with_.renewals.guard(*on, what.sent, with_.around.now(), only(primary));
  } else if (what.said == ballot::no || what.never) {
    with_.renewals.denied(on->shares()[primary]);
  }
}

bool hold::confirm(time_point sent, milliseconds ttl, primary_set at) {
  return on->confirm(at, detail::valid_until(sent, ttl, with_.around.settings.drift));
}

key_ttl hold::ttl_to_send(milliseconds wanted) {
  return on->ttl_to_send(wanted, with_.around.now(), with_.around.settings.drift);
}

// It may have waited to be written until nobody wanted the hold to be renewed any more.
void hold::confirmed_by_count(time_point sent, milliseconds ttl, primary_set at) {
  if (!unquestioned() || min_replicas() > 0) return;
  const auto from = std::min(sent, renewed_until());
  confirm(from, ttl, at);
  with_.renewals.guard(*on, sent, with_.around.now(), at);
}

void hold::renew(std::shared_ptr<lease_record> lease, milliseconds ttl, time_point answer_by, done_handler done) {
  if (!live()) return done(end_reason(), end_detail());
  if (ttl == milliseconds::zero()) ttl = lease->asked.ttl;
  auto send = [this, self = self(), ttl](time_point end, topology::handler then) {
    if (ended()) return then({errc::unconfirmed, {}});  // what it would raise may be another's
    send_until(with_.around, end, keys()->of.renew.make_one(*keys(), ttl_to_send(ttl), field()), urgency::obligation,
               std::move(then));
  };
  auto answered = [this, self = self(), lease = std::move(lease), ttl,
                   done = with_.calls.until_closed(errc::closed, std::move(done))](const outcome& o) {
    const auto said = keys()->of.renew.read(o, 1);
    if (state() == lease_state::released) {
      if (auto* const next = on->holder(); next && !said.failed) next->heed(said.value[0]);
      return done(errc::not_held, {});
    }
    if (live() && !said.failed) heed(said.value[0]);
    if (!ended() && !said.failed && !confirm(o.sent, ttl, o.yes)) lose(errc::lost);
    if (ended()) return done(end_reason(), end_detail());
    if (said.failed) return done(said.failed->code, said.failed->detail);
    if (!lease->released.load(std::memory_order_acquire)) with_.renewals.guard(*on, o.sent, with_.around.now(), o.yes);
    done({}, {});
  };
  topology::handler hears = std::move(answered);
  if (min_replicas() > 0) hears = when_replicated(std::move(hears));
  const auto left = std::max<nanoseconds>(answer_by - with_.around.now(), nanoseconds(1));
  ask_twice(with_.around, std::min(command_budget(with_.around.settings, this->ttl()), left), std::move(send),
            std::move(hears));
}

// Of a renewal: it counts when enough replicas have it.
topology::handler hold::when_replicated(topology::handler then) {
  return [this, self = self(), then = std::move(then)](const outcome& o) mutable {
    const auto said = keys()->of.renew.read(o, 1);
    if (said.failed || said.value[0] != renewal_answer::confirmed || ended()) return then(o);
    auto told = [o, then = std::move(then)](const std::optional<redis::failure>& too_few) {
      then(too_few ? outcome{too_few->code, {}, too_few->detail} : o);
    };
    with_.around.when_replicated(keys()->lock, min_replicas(), o.server, valid_until(), std::move(told));
  };
}

void hold::give_up(lease_record& lease, done_handler&& done) {
  const auto keep = self();
  const auto before = ttl();
  const auto replicas = min_replicas();
  const bool wanted = static_cast<bool>(done);
  const auto nobody = [](error_code, const std::string&) {};
  if (!wanted) done = nobody;
  const bool found_over = !exclusive() && !ended() && !with_.closed();
  if (found_over) end_by_loss(errc::lost);
  remove(lease);
  if (leases_.empty()) {
    if (host_) keep_itself();
    with_.renewals.forget(*on);  // disarmed before anything is sent
  }
  lease.tell_end(errc::not_held);
  if (with_.closed()) {
    if (leases_.empty()) lose(errc::closed);  // close() comes too late to find it
    if (ended()) leave_if_forgotten();
    return done(errc::closed, {});
  }
  if (ended()) {
    if (found_over) tell_reentries();
    leave_if_forgotten();
    return done(end_reason(), end_detail());
  }
  if (!leases_.empty()) {
    tell_count();
    return done({}, {});
  }
  try {
    unlock_last(before, replicas, wanted, std::move(done));
  } catch (...) {
    lose(errc::lost);  // there is no memory to give it back: others must not wait for it
    throw;
  }
}

void hold::unlock_last(milliseconds before, unsigned replicas, bool wanted, done_handler&& done) {
  const auto nobody = [](error_code, const std::string&) {};
  const auto now = with_.around.now();
  const auto answer_by = with_.patience.answer_by(keys()->lock, now, command_budget(with_.around.settings, before));
  if (!changing()) return send_unlock({before, replicas, now, answer_by, std::move(done)});
  // A re-entry before it may take its own time.
  const auto late = make_error_code(errc::unconfirmed);
  if (wanted && answer_by <= now) {
    send_unlock({before, replicas, now, answer_by, nobody});
    return done(late, unanswered_before);
  }
  if (wanted) done = with_.patience.limit(keys(), answer_by, late, std::move(done));
  send_unlock({before, replicas, now, answer_by, with_.calls.until_closed(errc::closed, std::move(done))});
}

// ---- the count

void hold::end_change() {
  const auto keep = self();
  changes_.ended();
  tell_count();
}

void hold::send_unlock(last_unlock&& u) {
  if (!changing()) return changes_.add([&] { free(std::move(u)); });
  auto before = last_unlocks_.before_begin();
  for (auto next = last_unlocks_.begin(); next != last_unlocks_.end(); ++next) before = next;
  last_unlocks_.insert_after(before, std::move(u));
  changes_.add([this, self = self()] { free_if_last(); });
}

void hold::free_if_last() {
  if (last_unlocks_.empty()) return end_change();  // the release under way answers it
  auto u = std::move(last_unlocks_.front());
  last_unlocks_.pop_front();
  if (!ended() && leases_.empty()) return free(std::move(u));
  if (ended()) {
    leave_if_forgotten();
    u.done(end_reason(), end_detail());
  } else {
    u.done({}, {});
  }
  end_change();
}

// Who re-enters, or waits for its turn to do so, tells the count by that.
void hold::tell_count() noexcept try {
  if (!ended() && !changing() && reentries_.empty()) recount(with_, *on, in_question::count);
} catch (const std::bad_alloc&) {
  note_count(0);
}

void hold::count_elsewhere() noexcept {
  if (ended() || !on->counted.ever_sent) return;
  note_count(0);
  tell_count();
}

void hold::free(last_unlock&& u) {
  HOLDFAST_ASSERT(leases_.empty() && changing() && host_);
  const auto valid = valid_until();
  const bool sound = unquestioned();
  end(lease_state::released, errc::not_held, {});
  try {
    if (host_->pass_on(*this, {sound, u.ttl, u.replicas})) {
      passed(u);
    } else {
      release(std::move(u), valid);
    }
  } catch (...) {
    released();  // without memory, too: its key ends with its TTL
    throw;
  }
  released();
}

// A claim that was not confirmed, or that somebody may have broken, is nothing for another lease.
bool hold::unquestioned() const noexcept {
  return exclusive() && !on->suspended() && !forced_ && !on->in_doubt && !with_.closed();
}

void hold::passed(const last_unlock& u) {
  u.done({}, {});
  for (const auto& other : std::exchange(last_unlocks_, {})) other.done({}, {});
}

void hold::release(last_unlock&& u, time_point valid) {
  for (const auto& other : last_unlocks_) {
    u.ttl = std::max(u.ttl, other.ttl);
    u.answer_by = std::max(u.answer_by, other.answer_by);
  }
  const auto now = with_.around.now();
  const auto may_live = std::max(u.ttl, on->may_live(now, with_.around.settings.drift));
  const auto answer_by = u.answer_by;
  auto answered = [this, self = self(), asked = std::move(u), others = std::exchange(last_unlocks_, {}), now](
                      error_code error, const std::string& why) {
    if (error == errc::unconfirmed && with_.around.now() >= asked.answer_by)
      with_.patience.ran_out(keys()->lock, asked.called);
    const auto& detail = error == errc::lost && forced_ ? by_force() : why;
    if (with_.around.settings.observer) report_release(now, asked.ttl, error, detail);
    asked.done(error, detail);
    for (const auto& other : others) other.done(error, detail);
  };
  with_.freeing.release(*host_, keys(), field(), may_live, now, valid, answer_by, on->may_be_at(), std::move(answered));
}

void hold::released() {
  const auto keep = self();
  each_step step;
  step([this] { host_->ended(*this); });
  step([this] { leave_if_forgotten(); });
  step([this] { with_.watch_links(); });
  step([this] { end_change(); });
  step.rethrow();
}

void hold::report_release(time_point called, milliseconds ttl, const error_code& error, std::string_view detail) const {
  auto e = event_of(event::kind::released, *this, called);
  e.what.detail = detail;
  e.what.ttl = ttl;
  if (error) {
    const bool corrupt = error == errc::corrupt_lock, lost = corrupt || error == errc::lost;
    e.what.what = lost ? event::kind::lost : event::kind::release_failed;
    e.what.reason = error;
    if (corrupt)
      e.what.cause = loss_cause::corrupt;
    else if (lost)
      e.what.cause = called < valid_until() ? cause_of_denial() : loss_cause::unconfirmed;
  }
  with_.around.report(std::move(e));
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

void hold::heed(renewal_answer said) {
  if (said == renewal_answer::confirmed) return;
  denied(said);
  lose(errc::lost);
}

void hold::close() {
  const auto keep = self();
  lose(errc::closed);
  tell_reentries();
}

void hold::doubt(nanoseconds patience) {
  on->in_doubt = true;
  with_.renewals.confirm_soon(*on, patience);
}

bool hold::client_closed() const noexcept { return with_.closed(); }

void hold::end_by_loss(errc reason) {
  HOLDFAST_ASSERT(host_);
  if (with_.closed()) reason = errc::closed;
  const auto& around = with_.around;
  const auto now = around.now();
  const bool expired = now >= valid_until();
  const auto cause = cause_of(reason);
  const auto may_live =
      std::max(leases_.empty() ? around.settings.ttl : ttl(), on->may_live(now, around.settings.drift));
  end(lease_state::lost, reason, text_of_loss(reason));
  // The hold is lost, even if one of these steps finds no memory.
  if_memory([this] { with_.watch_links(); });
  if_memory(
      [&] { report(reason == errc::closed ? event::kind::closed : event::kind::lost, reason, end_detail(), cause); });
  for (auto* l : leases_.all()) if_memory([&] { l->tell_end(reason); });
  // Redis keeps an expired key a little longer than we trust it, or for long if it was renewed without our hearing of
  // it.
  // A minority of several primaries may have a field that a majority has not. Its field among others would keep the key
  // from becoming free.
  if (expired || with_.closed() || keys()->of.voted || shared_)
    if_memory([&] {
      with_.freeing.release_in_background(*host_, keys(), field(), may_live, {},
                                          shared_ ? everywhere : on->may_be_at());
    });
  else
    with_.freeing.found_gone(keys(), field(), may_live, now);
  if_memory([this] { host_->ended(*this); });
}

void hold::end(lease_state how, errc why, text detail) noexcept {
  HOLDFAST_ASSERT(!ended() && (how == lease_state::lost || how == lease_state::released));
  end_reason_ = why;
  end_detail_ = std::move(detail);
  with_.renewals.forget(*on);
  end_.store(how, std::memory_order_release);
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
    with_.renewals.forget(*on);
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

loss_cause hold::cause_of_denial() const noexcept {
  if (shared_) return loss_cause::corrupt;
  return forced_ ? loss_cause::forced : loss_cause::denied;
}

loss_cause hold::cause_of(errc reason) const noexcept {
  if (reason == errc::closed) return loss_cause::none;
  if (reason == errc::corrupt_lock) return loss_cause::corrupt;
  if (with_.around.now() < valid_until()) return cause_of_denial();
  return renewal_paused() ? loss_cause::not_renewed : loss_cause::unconfirmed;
}

// The end of the validity comes first: it may have passed long before Redis answered. The text is empty where there is
// no memory for it: the loss itself must be told.
hold::text hold::text_of_loss(errc reason) const noexcept try {
  const auto is = [](std::string what) { return std::make_unique<const std::string>(std::move(what)); };
  const auto& around = with_.around;
  if (reason == errc::closed) return is("the client was closed");
  if (reason == errc::corrupt_lock) return is("found while it was held");
  if (around.now() < valid_until()) return is(shared_ ? with_others : forced_ ? by_force() : not_ours);
  std::string cause = cause_of_loss();
  const bool wanted = !renewal_paused();
  if (wanted && !around.servers.answering(keys()->lock))
    cause.append(": ").append(around.servers.trouble(keys()->lock).detail);
  return is(std::move(cause));
} catch (const std::bad_alloc&) {
  return nullptr;
}

void hold::report(event::kind happened, error_code reason, std::string_view detail, loss_cause cause) const {
  const auto& around = with_.around;
  if (!around.settings.observer) return;
  auto e = event_of(happened, *this, around.now());
  e.what.ttl = ttl();
  e.what.cause = cause;
  e.what.reason = reason;
  e.what.detail = detail;
  around.report(std::move(e));
}

hold_event event_of(event::kind what, const hold& h, time_point at) {
  const auto& keys = *h.keys();
  return {{.what = what,
           .name = keys.name,
           .held = at - h.granted_at,
           .owner = h.who,
           .token = h.token(),
           .count = h.count(),
           .lock_kind = keys.of.name},
          &h.field(),
          h.passes,
          at};
}

}  // namespace holdfast::detail
