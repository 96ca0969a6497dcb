// SPDX-License-Identifier: BSL-1.0
#include "sync/watchdog.hpp"

#include <algorithm>
#include <string>

#include "base/assert.hpp"
#include "sync/hold.hpp"

namespace holdfast::detail {
namespace {

constexpr std::size_t batch_size = 100;
/// More would wait in the server's queue or in ours, where they cannot be overtaken by what has become more urgent.
constexpr std::size_t most_in_flight = 16;
/// Others have their turn on the strand before more of what is due is looked at.
constexpr std::size_t collected_at_once = 1000;

/// A lease that nobody renews is confirmed without raising its TTL: what it claims already is sent, which the key has.
constexpr milliseconds ttl_that_never_raises{1};

}  // namespace

// Fields of one client differ in a number that grows.
bool watchdog::older(const claim& a, const claim& b) noexcept {
  const std::string_view left = a.field, right = b.field;
  return left.size() != right.size() ? left.size() < right.size() : left < right;
}

bool watchdog::older(const share& a, const share& b) noexcept {
  return &a.of == &b.of ? a.node < b.node : older(a.of, b.of);
}

watchdog::watchdog(surroundings& around, lose on_lost)
    : around_(around), on_lost_(std::move(on_lost)), renewal_alarm_(around.alarms), expiry_alarm_(around.alarms) {}

void watchdog::guard(claim& c, time_point sent) {
  HOLDFAST_ASSERT(c.holder());
  if (!guarded(c)) {
    c.expires_at = c.valid_until();
    expiries_.emplace(*c.expires_at, &c);
    guarded_shares_ += c.shares().size();
  }
  for (auto& s : c.shares()) {
    restore(s);
    if (!s.plan.in_flight) plan_next(s, sent);
  }
  rearm();
}

void watchdog::forget(claim& c) {
  for (auto& s : c.shares()) unschedule_renewal(s);
  if (guarded(c)) {
    expiries_.erase({*std::exchange(c.expires_at, std::nullopt), &c});
    guarded_shares_ -= c.shares().size();
  }
  rearm();
}

void watchdog::confirm_soon(claim& c, nanoseconds patience) {
  if (!guarded(c)) return;
  const auto by = around_.now() + patience;
  for (auto& s : c.shares()) confirm_soon(s, by);
  rearm();
}

void watchdog::confirm_soon(share& s, time_point by) {
  if (s.plan.in_flight) {
    s.plan.confirm_by = by;  // what is in flight may have been answered before there was a doubt
  } else if (!s.plan.due && (!s.plan.at || *s.plan.at > by)) {
    schedule_renewal(s, by);
  }
}

void watchdog::link_changed(node_id node, bool up) {
  queues_[node].up = up;
  const auto now = around_.now();
  for (const auto& [when, c] : decltype(expiries_)(expiries_))
    for (auto& s : c->shares()) {
      if (s.node != node) continue;
      if (!up) {
        suspend(s, errc::unreachable);
      } else if (!s.plan.in_flight && !s.plan.due) {
        schedule_renewal(s, now);
      }
    }
  if (up) return renew_due();
  rearm();
}

void watchdog::schedule_renewal(share& s, time_point when) {
  HOLDFAST_ASSERT(!holder_of(s).leases.empty() && !s.plan.in_flight);
  unschedule_renewal(s);
  s.plan.at = when;
  renewals_.emplace(when, &s);
}

void watchdog::unschedule_renewal(share& s) {
  if (s.plan.at) renewals_.erase({*std::exchange(s.plan.at, std::nullopt), &s});
  if (s.plan.due) queues_.at(s.node).due.erase({*std::exchange(s.plan.due, std::nullopt), &s});
}

void watchdog::plan_next(share& s, time_point sent) {
  auto& h = holder_of(s);
  if (h.pause_renewal_unless([&] { return h.wants_renewal(around_.now()); })) return unschedule_renewal(s);
  const auto ttl = h.ttl();
  // What was sent for a shorter TTL may not have extended the validity.
  const auto confirmed = std::min(sent, s.valid_until() - (ttl - drift_of(ttl, around_.settings.drift)));
  const nanoseconds period = nanoseconds(ttl) / 3;
  schedule_renewal(s, confirmed + period - around_.random.up_to(period / 20));
}

void watchdog::renew_due() {
  const auto now = around_.now();
  collect_due(now);
  for (auto& [node, q] : queues_)
    while (q.up && q.in_flight < most_in_flight && !q.due.empty()) send(node, take_due(node, now));
  rearm();
}

void watchdog::collect_due(time_point now) {
  for (std::size_t n = 0; n < collected_at_once && !renewals_.empty() && renewals_.begin()->first <= now; ++n) {
    share& s = *renewals_.begin()->second;
    unschedule_renewal(s);
    s.plan.due = s.valid_until();
    queues_[s.node].due.emplace(*s.plan.due, &s);
  }
}

// Half of what is left at most: then its holder hears of the doubt in time.
nanoseconds watchdog::patience_of(const share& s, time_point now) const {
  const auto half = (s.of.valid_until() - now) / 2;
  return std::max<nanoseconds>(std::min(command_budget(around_.settings, holder_of(s).ttl()), half), milliseconds(1));
}

// A renewal that is due soon goes along: ten thousand leases taken one after the other share a hundred commands. A
// claim that is about to end goes alone: the others would have no more time for their answer than it has.
watchdog::batch watchdog::take_due(node_id node, time_point now) {
  const auto& waiting = queues_[node].due;
  batch due;
  nanoseconds patience{};
  const auto take = [&](share& s) {
    const auto its = patience_of(s, now);
    if (due.empty()) patience = its;
    if (its < patience / 2 || its > patience * 2) return;
    HOLDFAST_ASSERT(!s.plan.in_flight && guarded(s.of));
    unschedule_renewal(s);
    s.plan.in_flight = true;
    due.emplace_back(s.of.shared_from_this(), &s);
  };
  for (auto next = waiting.begin(); next != waiting.end() && due.size() < batch_size;) take(*(next++)->second);
  for (auto next = renewals_.begin(); next != renewals_.end() && due.size() < batch_size;) {
    const auto [when, s] = *next++;
    if (when > now + nanoseconds(holder_of(*s).ttl()) / 60) break;
    if (s->node == node) take(*s);
  }
  HOLDFAST_ASSERT(!due.empty());
  return due;
}

void watchdog::send(node_id node, batch shares) {
  const auto now = around_.now();
  auto patience = nanoseconds::max();
  std::vector<renewal> asked;
  asked.reserve(shares.size());
  for (const auto& s : shares) {
    const auto& h = holder_of(*s);
    const auto ttl = h.wants_renewal(now) ? h.ttl() : ttl_that_never_raises;
    asked.push_back({h.keys()->lock, h.field(), s->ttl_to_send(ttl, now, around_.settings.drift)});
    patience = std::min(patience, patience_of(*s, now));
  }
  std::vector<milliseconds> ttls;
  ttls.reserve(asked.size());
  for (const auto& a : asked) ttls.push_back(a.wanted.ttl);
  auto call = scripts::renew(asked);
  const auto batch_of = std::make_shared<const batch>(std::move(shares));
  auto late = [this, batch_of](const outcome& o) { on_late(*batch_of, o.error, o.detail); };
  auto& in_flight = queues_[node].in_flight;
  auto done = [this, node, &in_flight, batch_of, ttls = std::move(ttls)](const outcome& o) {
    HOLDFAST_ASSERT(in_flight > 0);
    --in_flight;
    answered(node, *batch_of, ttls, o);
    renew_due();
  };
  ++in_flight;
  around_.run(std::move(call),
              {.timeout = patience, .rank = urgency::obligation, .patient = true, .late = std::move(late)},
              std::move(done));
}

void watchdog::answered(node_id node, const batch& shares, const std::vector<milliseconds>& ttls, const outcome& o) {
  auto said = o.error ? answer<std::vector<bool>>{} : read_renew(o.reply, shares.size());
  if (said.error && !said.error->retry && shares.size() > 1) return send_alone(node, shares);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    share& s = *shares[i];
    s.plan.in_flight = false;
    if (!guarded(s.of)) continue;
    if (o.error) {
      on_unanswered(s, o.error, o.detail);
    } else if (said.error) {
      on_unanswered(s, said.error->code, said.error->text);
    } else if (said.value[i]) {
      on_confirmed(s, o.sent, ttls[i]);
    } else {
      tell_loss(s.of);
    }
  }
}

// It may still be answered, and counts then.
void watchdog::on_late(const batch& shares, const error_code& why, const std::string& detail) {
  for (const auto& s : shares)
    if (s->plan.in_flight && guarded(s->of)) doubt(*s, why, detail);
}

// One of them may be what is refused (a key that the user may not touch): the others must not go with it.
void watchdog::send_alone(node_id node, const batch& shares) {
  for (const auto& s : shares) {
    s->plan.in_flight = guarded(s->of);
    if (s->plan.in_flight) send(node, {s});
  }
}

void watchdog::on_confirmed(share& s, time_point sent, milliseconds ttl) {
  const auto now = around_.now();
  // It may have waited to be written. A hold ends a TTL after its max_hold all the same.
  const auto from = std::min(sent, holder_of(s).renewed_until());
  // Loss is sticky: what is confirmed after the validity was over is lost all the same. expire_due() says so.
  if (now >= s.of.valid_until() || !s.of.confirm(s, valid_until(from, ttl, around_.settings.drift))) return;
  restore(s);
  plan_next(s, sent);
  if (const auto by = std::exchange(s.plan.confirm_by, std::nullopt)) confirm_soon(s, *by);
}

void watchdog::doubt(share& s, const error_code& why, const std::string& detail) {
  around_.report(event::kind::renewal_failed, holder_of(s), why, detail);
  suspend(s, why);
}

void watchdog::on_unanswered(share& s, const error_code& why, const std::string& detail) {
  doubt(s, why, detail);
  const auto now = around_.now();
  const auto left = std::max<nanoseconds>(s.of.valid_until() - now, milliseconds(2));
  const auto pause = std::min<nanoseconds>(renewal_retry_pause(holder_of(s).ttl()), left / 2);
  schedule_renewal(s, now + pause - around_.random.up_to(pause / 5));
}

void watchdog::suspend(share& s, const error_code& why) {
  const bool over = s.of.left() == nanoseconds::zero();  // then it is lost, and expire_due() says so
  if (!over && s.of.doubt(s)) around_.report(event::kind::suspended, holder_of(s), why);
}

void watchdog::restore(share& s) {
  if (!s.doubted() || s.of.left() == nanoseconds::zero()) return;
  if (s.of.trust(s)) around_.report(event::kind::restored, holder_of(s));
}

void watchdog::expire_due() {
  const auto now = around_.now();
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    claim& c = *expiries_.begin()->second;
    if (c.valid_until() > now) {  // renewed since
      expiries_.erase(expiries_.begin());
      c.expires_at = c.valid_until();
      expiries_.emplace(*c.expires_at, &c);
    } else {
      tell_loss(c);
    }
  }
  rearm();
}

void watchdog::tell_loss(claim& c) {
  const auto keep = c.shared_from_this();
  forget(c);
  on_lost_(c, errc::lost);
}

hold& watchdog::holder_of(const share& s) const {
  HOLDFAST_ASSERT(guarded(s.of) && s.of.holder());
  return *s.of.holder();
}

std::size_t watchdog::due() const noexcept {
  std::size_t all = 0;
  for (const auto& [node, q] : queues_) all += q.due.size();
  return all;
}

// An alarm that is early does no harm and corrects itself; so it is not moved for every claim that comes and goes.
void watchdog::rearm() {
  HOLDFAST_ASSERT(renewals_.size() + due() <= guarded_shares_);
  const auto arm = [](timer& alarm, const auto& what, auto action) {
    if (what.empty()) return alarm.stop();
    const auto first = what.begin()->first;
    if (!alarm.due() || *alarm.due() > first) alarm.start(first, action);
  };
  // What is due already goes on with the next answer, or with the link.
  arm(renewal_alarm_, renewals_, [this] { renew_due(); });
  arm(expiry_alarm_, expiries_, [this] { expire_due(); });
}

}  // namespace holdfast::detail
