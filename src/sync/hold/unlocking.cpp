// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/unlocking.hpp"

#include <algorithm>
#include <forward_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "sync/hold/engine_parts.hpp"
#include "sync/hold/hold.hpp"
#include "sync/hold/last_unlock.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/hold/loss.hpp"

namespace holdfast::detail {
namespace {

constexpr auto without_caller = [](const std::optional<failure>&) {};

}  // namespace

/// The acts of one call about one hold. The caller keeps the hold alive. Unlocks that wait are in the hold, so this
/// object has no state.
class unlocking {
 public:
  explicit unlocking(hold& of) noexcept : hold_(of), parts_(of.parts_) {}

  void give_up(lease_record& lease, done_handler&& done);

 private:
  void unlock_last(milliseconds ttl, unsigned replicas, bool has_caller, done_handler&& done);
  void begin_or_wait(last_unlock&& unlock);
  void at_its_turn();
  void free(last_unlock&& unlock, time_point now);
  void passed(const last_unlock& unlock);
  void release(last_unlock&& unlock, time_point valid, time_point now);
  void released();
  void report_release(time_point called, milliseconds ttl, const std::optional<failure>& failed) const;

  hold& hold_;
  const engine_parts& parts_;
};

void give_up(lease_record& lease, done_handler&& done) {
  const auto keep = lease.of;
  unlocking(*keep).give_up(lease, std::move(done));
}

void unlocking::give_up(lease_record& lease, done_handler&& done) {
  const auto ttl = hold_.ttl();
  const auto replicas = hold_.min_replicas();
  const bool has_caller = static_cast<bool>(done);
  if (!has_caller) done = without_caller;
  // The wishes are read before the lease leaves the hold, because the release needs the TTL of the whole hold.
  // The validity may be over before the watchdog's alarm comes. Then the unlock reports a loss, not a success.
  const bool found_over = !hold_.exclusive() && !hold_.ended() && !parts_.closed();
  if (found_over) hold_.end_by_loss(errc::lost);
  hold_.remove(lease);
  const bool was_last = hold_.leases_.empty();
  if (was_last) {
    hold_.owner = lease.owner;
    // The lease kept the hold alive. The release needs it, and the host knows it by its address alone.
    if (hold_.host_) hold_.keep_itself();
    // A renewal behind the release would find nothing, and report a loss that is none.
    parts_.renewals.forget(*hold_.on);
  }
  lease.tell_end(errc::not_held);
  if (parts_.closed()) {
    // close() may have looked at the holds before, so this one ends here.
    if (was_last) hold_.lose(errc::closed);
    if (hold_.ended()) hold_.leave_if_forgotten();
    return done(failure{errc::closed, {}});
  }
  if (hold_.ended()) {
    // end_by_loss() has notified the leases. Re-entries are notified after this lease has left the hold.
    if (found_over) hold_.tell_reentries();
    hold_.leave_if_forgotten();
    return done(hold_.end_cause());
  }
  if (!was_last) {
    // Redis has the count for others to look at. The owner does not wait for it: its hold goes on either way.
    hold_.tell_count();
    // The caller is answered last: its handler may call the last unlock, and then the hold has no host any more.
    if (hold_.joinable()) hold_.host_->left(lease.owner);
    return done(std::nullopt);
  }
  try {
    unlock_last(ttl, replicas, has_caller, std::move(done));
  } catch (...) {
    // There is no memory to release the field. Waiters of this client must not wait for a hold that nobody releases.
    hold_.lose(errc::lost);
    throw;
  }
}

void unlocking::unlock_last(milliseconds ttl, unsigned replicas, bool has_caller, done_handler&& done) {
  const auto now = parts_.env.now();
  const auto& keys = hold_.keys();
  const auto answer_by = parts_.unlock_budget.answer_by(keys->lock, now, command_budget(parts_.env.settings, ttl));
  if (!hold_.changing()) return begin_or_wait({ttl, replicas, now, answer_by, std::move(done)});
  // A re-entry under way may take longer than an unlock promises. The caller then gets unconfirmed in time, and the
  // release follows at its turn.
  if (has_caller && answer_by <= now) {
    // The server has been silent for the whole budget of an earlier unlock, so this one waits for nothing.
    begin_or_wait({ttl, replicas, now, answer_by, without_caller});
    return done(unanswered());
  }
  if (has_caller) done = parts_.unlock_budget.limit(keys, answer_by, std::move(done));
  begin_or_wait({ttl, replicas, now, answer_by, parts_.calls.until_closed(errc::closed, std::move(done))});
}

void unlocking::begin_or_wait(last_unlock&& unlock) {
  // It was called just now: the clock is not read again, for each unlock pays for that.
  if (!hold_.changing()) return hold_.begin_change([&, now = unlock.called] { free(std::move(unlock), now); });
  auto& waiting = hold_.last_unlocks_;
  // A forward list takes one word of each hold, and nearly every hold has none. The walk to its end is short.
  auto before = waiting.before_begin();
  for (auto next = waiting.begin(); next != waiting.end(); ++next) before = next;
  waiting.insert_after(before, std::move(unlock));
  hold_.begin_change([keep = hold_ptr(&hold_)] { unlocking(*keep).at_its_turn(); });
}

void unlocking::at_its_turn() {
  auto& waiting = hold_.last_unlocks_;
  // A release that began before this turn has taken all unlocks that waited, and answers them.
  if (waiting.empty()) return hold_.end_change();
  auto unlock = std::move(waiting.front());
  waiting.pop_front();
  // A re-entry that was granted before this turn may still be open. Then this unlock was not the last one.
  if (!hold_.ended() && hold_.leases_.empty()) return free(std::move(unlock), parts_.env.now());
  if (hold_.ended()) {
    hold_.leave_if_forgotten();
    unlock.done(hold_.end_cause());
  } else {
    unlock.done(std::nullopt);
  }
  hold_.end_change();
}

void unlocking::free(last_unlock&& unlock, time_point now) {
  HOLDFAST_ASSERT(hold_.leases_.empty() && hold_.changing() && hold_.host_);
  const auto valid = hold_.valid_until();
  // Both are read before end(), which makes the validity zero for every reader.
  const bool sound = hold_.unquestioned();
  // The hold ends before its claim is passed on, because a claim has one holder at a time.
  hold_.end(lease_state::released, errc::not_held, {});
  try {
    if (hold_.host_->pass_on(hold_, {sound, unlock.ttl, unlock.replicas})) {
      passed(unlock);
    } else {
      release(std::move(unlock), valid, now);
    }
  } catch (...) {
    // Without memory nothing was sent, and the key ends with its TTL. In this process the name must be free at once.
    released();
    throw;
  }
  released();
}

void unlocking::passed(const last_unlock& unlock) {
  unlock.done(std::nullopt);
  for (const auto& other : std::exchange(hold_.last_unlocks_, {})) other.done(std::nullopt);
}

// All unlocks that wait share one release. The key may live for the longest of their TTLs, and the release may take the
// longest of their budgets. A caller with a shorter budget is answered by its own limit.
void unlocking::release(last_unlock&& unlock, time_point valid, time_point now) {
  for (const auto& other : hold_.last_unlocks_) {
    unlock.ttl = std::max(unlock.ttl, other.ttl);
    unlock.answer_by = std::max(unlock.answer_by, other.answer_by);
  }
  const auto& on = *hold_.on;
  const auto may_live = std::max(unlock.ttl, on.may_live(now, parts_.env.settings.drift));
  const auto answer_by = unlock.answer_by;
  auto answered = [keep = hold_ptr(&hold_), asked = std::move(unlock), others = std::exchange(hold_.last_unlocks_, {}),
                   now](const std::optional<failure>& failed) {
    const auto& parts = keep->parts_;
    // Only a whole budget without an answer shows that the server is silent. A connection that ends shows nothing.
    if (redis::error_of(failed) == errc::unconfirmed && parts.env.now() >= asked.answer_by)
      parts.unlock_budget.ran_out(keep->keys()->lock, asked.called);
    // The release finds the key gone, and this client has broken the lock: the text names that cause.
    std::optional<failure> forced;
    if (redis::error_of(failed) == errc::lost && keep->packed_.forced)
      forced = redis::failure_with(errc::lost, by_force());
    const auto& why = forced ? forced : failed;
    if (parts.env.settings.observer) unlocking(*keep).report_release(now, asked.ttl, why);
    asked.done(why);
    for (const auto& other : others) other.done(why);
  };
  parts_.freeing.release(*hold_.host_, hold_.keys(), hold_.field(), may_live, now, valid, answer_by, on.may_be_at(),
                         std::move(answered));
}

void unlocking::released() {
  const hold_ptr keep(&hold_);
  // A step without memory must not keep the others from running: the queue behind this change would stand still.
  each_step step;
  step([this] { hold_.host_->ended(hold_); });
  step([this] { hold_.leave_if_forgotten(); });
  step([this] { parts_.renewals.end_watch_if_idle(); });
  step([this] { hold_.end_change(); });
  step.rethrow();
}

void unlocking::report_release(time_point called, milliseconds ttl, const std::optional<failure>& failed) const {
  auto ending = event_of(event_kind::released, hold_, called);
  auto& shown = ending.content;
  shown.ttl = ttl;
  if (failed) {
    const auto& error = failed->code;
    shown.detail = failed->detail;
    // A refusal or silence says nothing about the lock. "Not yours" means that it was lost before the unlock.
    const bool corrupt = error == errc::corrupt_lock, lost = corrupt || error == errc::lost;
    shown.kind = lost ? event_kind::lost : event_kind::release_failed;
    shown.reason = error;
    if (corrupt)
      shown.cause = loss_cause::corrupt;
    else if (lost)
      shown.cause = called < hold_.valid_until() ? cause_of_denial(hold_.packed_.shared, hold_.packed_.forced)
                                                 : loss_cause::unconfirmed;
  }
  parts_.env.report(std::move(ending));
}

}  // namespace holdfast::detail
