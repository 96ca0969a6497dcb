// SPDX-License-Identifier: BSL-1.0
#include "sync/renewal/watchdog.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "sync/note/grant_notes.hpp"

namespace holdfast::detail {
namespace {

/// With more shares than this, renewals are spread over their period. Fewer are cheaper together.
constexpr std::size_t crowd = 1000;

}  // namespace

watchdog::watchdog(environment& env, renewal_host& holders)
    : env_(env), holders_(holders), renewals_(env.servers, env.settings), sender_(env, renewals_, holders, *this),
      tracker_(env, *this), renewal_alarm_(env.alarms), expiry_alarm_(env.alarms) {}

// ---- guarded claims

void watchdog::guard(claim& held, time_point sent, time_point now, primary_set at) {
  guard(held, sent, now, at, rhythm::begun);
}

void watchdog::guard_on(claim& held, time_point now) { guard(held, now, now, held.trusted_at(), rhythm::kept); }

void watchdog::guard(claim& held, time_point sent, time_point now, primary_set at, rhythm pace) {
  HOLDFAST_ASSERT(held.holder());
  // A re-entry or a confirmed count guards a claim once more. Its first renewal is planned already.
  const bool begins = !guarded(held), first = idle();
  if (begins) {
    expire_at(held, held.valid_until());
    guarded_shares_ += held.shares().size();
  }
  for (std::size_t n = 0; n < held.shares().size(); ++n) {
    auto& part = held.shares()[n];
    const bool confirmed = (at & only(n)) != 0;
    if (confirmed) restore(part);
    // It is unknown yet whether this primary has the field. Until it answers, it does not count.
    if (!confirmed && begins) held.doubt(part);
    if (in_flight(part) || part.denied()) continue;
    // A planned repetition stays planned, and so does the renewal that settles a doubt. This confirmation may have run
    // before the doubt, and proves nothing about it.
    const bool stands = !confirmed ? part.doubted() : part.of.in_doubt;
    if (!begins && stands && part.stage != renewal_stage::none) continue;
    // A primary that has not answered yet is asked at the usual time, once its server has been up.
    const bool first = !part.confirmed() && begins && renewals_.was_up(part.node);
    if (begins && pace == rhythm::kept && part.doubted()) {
      renewals_.schedule(part, now + renewal_retry_pause(part.of.wanted.ttl));
    } else if (part.confirmed() || first) {
      plan_next(part, sent, now, begins ? pace : rhythm::kept);
    }
  }
  rearm();
  if (env_.notes) env_.notes->confirmed(held);
  if (first) env_.servers.keep_watch(true);
}

void watchdog::forget(claim& held) {
  if (!guarded(held)) return;
  for (auto& part : held.shares()) renewals_.unschedule(part);
  expiries_.erase(held);
  HOLDFAST_ASSERT(guarded_shares_ >= held.shares().size());
  guarded_shares_ -= held.shares().size();
  // An alarm that comes too early costs little, so it stays while any claim is guarded. Without claims it would wake
  // the thread for nothing.
  if (idle()) rearm();
}

// ---- the next renewal of a share

void watchdog::plan_next(share& part, time_point sent, time_point now, rhythm pace) {
  // Only max_hold ends renewal before the unlock. The holder is asked then alone: its memory is far from the cache.
  if (!part.of.wanted.for_good && holders_.pause_if_unwanted(part.of, now)) return renewals_.unschedule(part);
  const milliseconds ttl = part.of.wanted.ttl;
  // A command with a shorter TTL may not have extended the validity. The period then counts from the longer one.
  const auto by_validity = part.valid_until() - (ttl - drift_of(ttl, env_.settings.drift));
  const auto confirmed = part.confirmed() ? std::min(sent, by_validity) : sent;
  const nanoseconds period = nanoseconds(ttl) / 3;
  // A burst of grants would be renewed in bursts indefinitely. A random first period spreads it.
  const bool spread = pace == rhythm::begun && guarded_shares_ > crowd;
  renewals_.schedule(part, confirmed + period - env_.random.up_to(spread ? period : period / 20));
}

void watchdog::renew_due() {
  const auto now = env_.now();
  renewals_.collect(now);
  sender_.send_due(now);
  rearm();
}

void watchdog::confirm_soon(claim& held, nanoseconds delay) {
  if (!guarded(held)) return;
  const auto by = env_.now() + delay;
  for (auto& part : held.shares())
    // A denied share would confirm nothing.
    if (!part.denied()) renewals_.confirm_by(part, by);
  rearm();
}

// Only a renewal finds out whether the claim still stands. A claim of several shares is settled by none of them alone,
// so it is not in doubt.
void watchdog::key_changed(claim& held, node_id node) {
  if (!guarded(held) || !held.keys->of.pushed.holds) return;
  const bool sole = held.shares().size() == 1;
  held.in_doubt |= sole;
  for (auto& part : held.shares())
    if (!part.denied() && (sole || part.node == node)) confirm_by_budget(part);
  rearm();
}

// Keys that are there are tracked from now on, and a missing one is confirmed. A command has keys of one group.
void watchdog::keys_in_question(node_id node) {
  key_tracker::grouped_shares parts;
  if_memory([&] {
    expiries_.each([&](claim& held) {
      for (auto& part : held.shares())
        if (!part.denied() && renewals_.home_of(part) == node) parts.emplace_back(sender_.group_of(part), &part);
    });
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
    tracker_.ask_all(node, std::move(parts), guarded_shares_);
  });
}

void watchdog::confirm_by_budget(share& part) {
  const auto now = env_.now();
  const milliseconds ttl = part.of.wanted.ttl;
  // A lease with a longer TTL may have ended since. The time of its confirmation would then lie ahead.
  const auto confirmed = std::min(now, part.valid_until() - (ttl - drift_of(ttl, env_.settings.drift)));
  const auto by = tracker_.budget.next(confirmed, now);
  // More changes of the same key cost nothing until it is confirmed.
  if (renewals::confirms_by(part, by)) return;
  tracker_.budget.spend(now);
  part.planned_by_push = true;
  renewals_.confirm_by(part, by);
}

void watchdog::link_changed(node_id node, bool up) {
  renewals_.link_changed(node, up);
  const auto now = env_.now();
  expiries_.each([&](claim& held) {
    for (auto& part : held.shares()) {
      // A link concerns each claim whose key lives there, also one that was granted by another node.
      if (part.denied() || renewals_.home_of(part) != node) continue;
      if (!up) {
        suspend(part, errc::unreachable);
      } else if (!in_flight(part) && !renewals::is_due_at(part, node)) {
        renewals_.schedule(part, now);
      }
    }
  });
  // A server that came back may have lost claims, so all of them are renewed at once.
  if (up) return renew_due();
  rearm();
}

// Slots move by the hundred while a cluster is resharded. Most often nothing is doubted and every node is up; a move
// then costs one look at each node. Every other share asks for its home when its renewal is due.
void watchdog::keys_moved() {
  if (!any_doubted_ && !renewals_.any_down()) return;
  any_doubted_ = false;
  const auto now = env_.now();
  expiries_.each([&](claim& held) {
    for (auto& part : held.shares()) {
      if (!in_flight(part) && !part.denied()) {
        const auto home = renewals_.home_of(part);
        const bool up = renewals_.is_up(home), due = part.stage == renewal_stage::due;
        if (!up) suspend(part, errc::unreachable);
        if (due ? part.node != home : up && part.doubted()) renewals_.schedule(part, now);
      }
      any_doubted_ |= part.doubted();
    }
  });
  // A node that is gone for good would make each later move look at all claims.
  if (!any_doubted_) renewals_.forget_dead();
  renew_due();
}

// ---- the results of renewals

void watchdog::confirmed(share& part, time_point sent, milliseconds ttl, bool doubted) {
  auto& held = part.of;
  const auto now = env_.now(), once_more = part.renewal;
  // The renewal may have waited to be written until max_hold was over. The hold still ends one TTL after its max_hold.
  const auto from = held.wanted.for_good ? sent : std::min(sent, holders_.renewed_until(held));
  const auto left = held.valid_until() - now;
  // Loss is sticky: a confirmation after the end of the validity changes nothing. expire_due() reports the loss.
  if (now >= held.valid_until() || !held.confirm(part, valid_until(from, ttl, env_.settings.drift))) return;
  count_renewal(part, left);
  if (env_.notes) env_.notes->confirmed(held);
  plan_next(part, sent, now, restore(part) ? rhythm::begun : rhythm::kept);
  if (doubted) return renewals_.confirm_by(part, once_more);
  // One of several shares does not settle a doubt: the field may be gone at the other primaries.
  if (held.shares().size() == 1) held.in_doubt = false;
}

void watchdog::renewed(node_id node, const renewals::shares& parts) { tracker_.ask(node, parts, guarded_shares_); }

// The key went between the renewal and the question, so no change will be pushed.
void watchdog::missing(const renewals::shares& parts) {
  for (const auto& part : parts)
    if (guarded(part->of) && !part->denied()) confirm_by_budget(*part);
  rearm();
}

void watchdog::count_renewal(const share& part, nanoseconds left) const {
  if (!env_.settings.observer) return;
  env_.settings.observer->measured({.kind = measurement_kind::renewed,
                                    .lock_kind = part.of.keys->of.name,
                                    .name = part.of.keys->name,
                                    .left = left,
                                    .ttl = part.of.wanted.ttl});
}

void watchdog::denied(share& part) {
  // The denial is noted for the release, which skips this primary then.
  if (!guarded(part.of)) return static_cast<void>(part.of.deny(part));
  renewals_.unschedule(part);
  denied(part, renewal_answer::denied);
  rearm();
}

// With several primaries the claim goes on while a majority has it. Only a denial that leaves less ends it.
void watchdog::denied(share& part, renewal_answer cause) {
  auto& held = part.of;
  if (!held.deny(part)) {
    // The holder ends in this call, and may drop the last reference to the claim.
    const claim_ptr keep(&held);
    forget(held);
    return holders_.denied(held, cause);
  }
  // Without this share the validity may end earlier than its alarm.
  expire_at(held, held.valid_until());
  suspend(part, errc::lost);
}

void watchdog::unanswered(share& part, const error_code& cause, const std::string& detail) {
  if_memory([&] { doubt(part, cause, detail); });
  const auto now = env_.now();
  const auto left = std::max<nanoseconds>(part.of.valid_until() - now, milliseconds(2));
  // At most half of the validity passes before the next try, so that there is one more before the end.
  const auto pause = std::min<nanoseconds>(renewal_retry_pause(part.of.wanted.ttl), left / 2);
  // The key may have moved meanwhile. Its new server can answer at once, so there is no pause.
  const bool moved = renewals_.home_of(part) != part.node;
  renewals_.schedule(part, moved ? now : now + pause - env_.random.up_to(pause / 5));
}

// The answer may still come, and then it counts. Until then the holder is warned.
void watchdog::late(share& part, const error_code& cause, const std::string& detail) { doubt(part, cause, detail); }

// ---- claims in danger

void watchdog::doubt(share& part, const error_code& cause, const std::string& detail) {
  // With several primaries one may be gone for days. Its holders get one event, not one at each renewal.
  const bool news = part.of.shares().size() == 1 || !part.doubted();
  if (news) holders_.renewal_failed(part.of, cause, detail);
  suspend(part, cause);
}

void watchdog::suspend(share& part, const error_code& cause) {
  any_doubted_ = true;
  // A claim whose validity is over is lost, not suspended. expire_due() reports that.
  const bool over = part.of.left() == nanoseconds::zero();
  if (!over && part.of.doubt(part)) holders_.suspended(part.of, cause);
}

bool watchdog::restore(share& part) {
  if (!part.doubted() || part.of.left() == nanoseconds::zero()) return false;
  if (part.of.trust(part)) holders_.restored(part.of);
  return true;
}

void watchdog::expire_at(claim& held, time_point when) {
  if (guarded(held)) expiries_.erase(held);
  held.expires_at = when;
  expiries_.insert(held);
}

void watchdog::expire_due() {
  const auto now = env_.now();
  while (auto* const held = expiries_.first_until(now)) {
    if (held->valid_until() > now) {
      // A renewal moves the validity, not the alarm: most claims are renewed or released many times before it comes.
      expire_at(*held, held->valid_until());
    } else {
      // First forgotten, then reported: the holder may begin anew in this call.
      const claim_ptr keep(held);
      forget(*held);
      holders_.expired(*held);
    }
  }
  rearm();
}

// An alarm that is early does no harm and corrects itself. So it is moved only to an earlier instant, and not for every
// claim that comes and goes.
void watchdog::rearm() {
  HOLDFAST_ASSERT(renewals_.size() <= guarded_shares_);
  const auto arm = [](timer& alarm, time_point when, auto action) {
    if (when == time_point::max()) return alarm.stop();
    if (!alarm.due() || *alarm.due() > when) alarm.start(when, action);
  };
  // A share that is due already needs no alarm: the next answer or the link sends it.
  arm(renewal_alarm_, renewals_.earliest(), [this] { renew_due(); });
  arm(expiry_alarm_, expiries_.earliest(), [this] { expire_due(); });
}

}  // namespace holdfast::detail
