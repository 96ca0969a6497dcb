// SPDX-License-Identifier: BSL-1.0
#include "sync/renewal/watchdog.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"

namespace holdfast::detail {
namespace {

/// Of so many shares the renewals are spread over their period. Fewer are cheaper together.
constexpr std::size_t crowd = 1000;

}  // namespace

watchdog::watchdog(environment& env, renewal_host& holders)
    : env_(env), holders_(holders), renewals_(env.servers, env.settings), sender_(env, renewals_, holders, *this),
      renewal_alarm_(env.alarms), expiry_alarm_(env.alarms) {}

// ---- which claims are guarded

void watchdog::guard(claim& held, time_point sent, time_point now, primary_set at) {
  guard(held, sent, now, at, rhythm::begun);
}

void watchdog::guard_on(claim& held, time_point now) { guard(held, now, now, held.trusted_at(), rhythm::kept); }

void watchdog::guard(claim& held, time_point sent, time_point now, primary_set at, rhythm pace) {
  HOLDFAST_ASSERT(held.holder());
  const bool begins = !guarded(held);
  if (begins) {
    expire_at(held, held.valid_until());
    guarded_shares_ += held.shares().size();
  }
  for (std::size_t n = 0; n < held.shares().size(); ++n) {
    auto& part = held.shares()[n];
    const bool confirmed = (at & only(n)) != 0;
    if (confirmed) restore(part);
    if (!confirmed && begins) held.doubt(part);  // nobody knows yet what it has
    if (in_flight(part) || part.denied()) continue;
    // A pause is kept, and so is the renewal that settles a doubt: what is confirmed now may have run before that.
    const bool stands = !confirmed ? part.doubted() : part.of.in_doubt;
    if (!begins && stands && part.stage != renewal_stage::none) continue;
    // One that nobody has heard of is asked in its turn; not before its server was there, nor put off.
    const bool first = !part.confirmed() && begins && renewals_.was_up(part.node);
    if (begins && pace == rhythm::kept && part.doubted()) {
      renewals_.schedule(part, now + renewal_retry_pause(part.of.wanted.ttl));
    } else if (part.confirmed() || first) {
      plan_next(part, sent, now, begins ? pace : rhythm::kept);
    }
  }
  rearm();
}

void watchdog::forget(claim& held) {
  if (!guarded(held)) return;
  for (auto& part : held.shares()) renewals_.unschedule(part);
  expiries_.erase(held);
  HOLDFAST_ASSERT(guarded_shares_ >= held.shares().size());
  guarded_shares_ -= held.shares().size();
  if (idle()) rearm();  // else it comes in vain, perhaps
}

// ---- when a share is renewed next

void watchdog::plan_next(share& part, time_point sent, time_point now, rhythm pace) {
  if (!part.of.wanted.for_good && holders_.pause_if_unwanted(part.of, now)) return renewals_.unschedule(part);
  const milliseconds ttl = part.of.wanted.ttl;
  // What was sent for a shorter TTL may not have extended the validity.
  const auto by_its_word = part.valid_until() - (ttl - drift_of(ttl, env_.settings.drift));
  const auto confirmed = part.confirmed() ? std::min(sent, by_its_word) : sent;
  const nanoseconds period = nanoseconds(ttl) / 3;
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
    if (!part.denied()) renewals_.confirm_by(part, by);
  rearm();
}

void watchdog::link_changed(node_id node, bool up) {
  renewals_.link_changed(node, up);
  const auto now = env_.now();
  expiries_.each([&](claim& held) {
    for (auto& part : held.shares()) {
      if (part.denied() || renewals_.home_of(part) != node) continue;
      if (!up) {
        suspend(part, errc::unreachable);
      } else if (!in_flight(part) && !renewals::is_due_at(part, node)) {
        renewals_.schedule(part, now);
      }
    }
  });
  if (up) return renew_due();
  rearm();
}

// Most often nothing is doubted and every node is up: slots move under load by the hundred.
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
  // A node that is gone for good is not looked for at each move.
  if (!any_doubted_) renewals_.forget_dead();
  renew_due();
}

// ---- the results of renewals

void watchdog::confirmed(share& part, time_point sent, milliseconds ttl, bool doubted) {
  auto& held = part.of;
  const auto now = env_.now(), once_more = part.renewal;
  // It may have waited to be written. A hold ends a TTL after its max_hold all the same.
  const auto from = held.wanted.for_good ? sent : std::min(sent, holders_.renewed_until(held));
  const auto left = held.valid_until() - now;
  // Loss is sticky: what is confirmed after the validity was over is lost all the same. expire_due() says so.
  if (now >= held.valid_until() || !held.confirm(part, valid_until(from, ttl, env_.settings.drift))) return;
  count_renewal(part, left);
  plan_next(part, sent, now, restore(part) ? rhythm::begun : rhythm::kept);
  if (doubted) return renewals_.confirm_by(part, once_more);
  if (held.shares().size() == 1) held.in_doubt = false;  // of several, one alone does not know
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
  if (!guarded(part.of)) return static_cast<void>(part.of.deny(part));
  renewals_.unschedule(part);
  denied(part, renewal_answer::denied);
  rearm();
}

// What a majority of several has is ours all the same.
void watchdog::denied(share& part, renewal_answer cause) {
  auto& held = part.of;
  if (!held.deny(part)) {
    const claim_ptr keep(&held);
    forget(held);
    return holders_.denied(held, cause);
  }
  expire_at(held, held.valid_until());  // which may be sooner
  suspend(part, errc::lost);
}

void watchdog::unanswered(share& part, const error_code& cause, const std::string& detail) {
  if_memory([&] { doubt(part, cause, detail); });
  const auto now = env_.now();
  const auto left = std::max<nanoseconds>(part.of.valid_until() - now, milliseconds(2));
  const auto pause = std::min<nanoseconds>(renewal_retry_pause(part.of.wanted.ttl), left / 2);
  // One that has moved meanwhile was asked for at a server that may not have it any more.
  const bool moved = renewals_.home_of(part) != part.node;
  renewals_.schedule(part, moved ? now : now + pause - env_.random.up_to(pause / 5));
}

// It may still be answered, and counts then.
void watchdog::late(share& part, const error_code& cause, const std::string& detail) { doubt(part, cause, detail); }

// ---- which claims are in danger

void watchdog::doubt(share& part, const error_code& cause, const std::string& detail) {
  // One of several primaries that is gone for long is told of once.
  const bool news = part.of.shares().size() == 1 || !part.doubted();
  if (news) holders_.renewal_failed(part.of, cause, detail);
  suspend(part, cause);
}

void watchdog::suspend(share& part, const error_code& cause) {
  any_doubted_ = true;
  const bool over = part.of.left() == nanoseconds::zero();  // then it is lost, and expire_due() says so
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
      expire_at(*held, held->valid_until());  // renewed since
    } else {
      const claim_ptr keep(held);
      forget(*held);
      holders_.expired(*held);
    }
  }
  rearm();
}

// An alarm that is early does no harm and corrects itself; so it is not moved for every claim that comes and goes.
void watchdog::rearm() {
  HOLDFAST_ASSERT(renewals_.size() <= guarded_shares_);
  const auto arm = [](timer& alarm, time_point when, auto action) {
    if (when == time_point::max()) return alarm.stop();
    if (!alarm.due() || *alarm.due() > when) alarm.start(when, action);
  };
  // What is due already goes on with the next answer, or with the link.
  arm(renewal_alarm_, renewals_.earliest(), [this] { renew_due(); });
  arm(expiry_alarm_, expiries_.earliest(), [this] { expire_due(); });
}

}  // namespace holdfast::detail
