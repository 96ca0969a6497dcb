// SPDX-License-Identifier: BSL-1.0
#include "sync/watchdog.hpp"

#include <algorithm>
#include <string>

#include "base/assert.hpp"

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

bool watchdog::sooner::operator()(const place& a, const place& b) const noexcept {
  if (a.first != b.first) return a.first < b.first;
  const std::string_view left = a.second->field,
                         right = b.second->field;  // of one client: they differ in a number that grows
  return left.size() != right.size() ? left.size() < right.size() : left < right;
}

watchdog::watchdog(surroundings& around, lose on_lost)
    : around_(around), on_lost_(std::move(on_lost)), renewal_alarm_(around.alarms), expiry_alarm_(around.alarms) {}

void watchdog::guard(hold& h, time_point sent) {
  HOLDFAST_ASSERT(!h.ended());
  if (!h.expires_at) {
    h.expires_at = h.valid_until();
    expiries_.emplace(*h.expires_at, &h);
  }
  restore(h);
  if (!h.renewing) plan_next(h, sent);
  rearm();
}

void watchdog::forget(hold& h) {
  unschedule_renewal(h);
  if (h.expires_at) expiries_.erase({*std::exchange(h.expires_at, std::nullopt), &h});
  rearm();
}

void watchdog::confirm_soon(hold& h, nanoseconds patience) {
  const auto by = around_.now() + patience;
  if (h.ended() || !h.expires_at) return;
  if (h.renewing) {
    h.confirm_by = by;  // what is in flight may have been answered before there was a doubt
    return;
  }
  if (h.due || (h.renew_at && *h.renew_at <= by)) return;
  schedule_renewal(h, by);
  rearm();
}

void watchdog::fed(hold& h) { confirm_soon(h, nanoseconds::zero()); }

void watchdog::link_changed(node_id node, bool up) {
  queues_[node].up = up;
  const auto now = around_.now();
  for (const auto& [when, h] : order(expiries_)) {
    if (node_of(*h) != node) continue;
    if (!up) {
      suspend(*h, errc::unreachable);
    } else if (!h->renewing && !h->due) {
      schedule_renewal(*h, now);
    }
  }
  if (up) return renew_due();
  rearm();
}

void watchdog::schedule_renewal(hold& h, time_point when) {
  HOLDFAST_ASSERT(h.expires_at && !h.renewing && !h.leases.empty());
  unschedule_renewal(h);
  h.renew_at = when;
  renewals_.emplace(when, &h);
}

void watchdog::unschedule_renewal(hold& h) {
  if (h.renew_at) renewals_.erase({*std::exchange(h.renew_at, std::nullopt), &h});
  if (!h.due) return;
  queues_.at(h.due->node).due.erase({h.due->by, &h});
  h.due.reset();
}

void watchdog::plan_next(hold& h, time_point sent) {
  if (h.pause_renewal_unless([&] { return h.wants_renewal(around_.now()); })) return unschedule_renewal(h);
  const auto ttl = h.ttl();
  // What was sent for a shorter TTL may not have extended the validity.
  const auto confirmed = std::min(sent, h.valid_until() - (ttl - drift_of(ttl, around_.settings.drift)));
  const nanoseconds period = nanoseconds(ttl) / 3;
  schedule_renewal(h, confirmed + period - around_.random.up_to(period / 20));
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
    hold& h = *renewals_.begin()->second;
    unschedule_renewal(h);
    const auto node = node_of(h);
    h.due = {h.valid_until(), node};
    queues_[node].due.emplace(h.due->by, &h);
  }
}

// Half of what is left at most: then its holder hears of the doubt in time.
nanoseconds watchdog::patience_of(const hold& h, time_point now) const {
  const auto half = (h.valid_until() - now) / 2;
  return std::max<nanoseconds>(std::min(command_budget(around_.settings, h.ttl()), half), milliseconds(1));
}

// A renewal that is due soon goes along: ten thousand leases taken one after the other share a hundred commands. A hold
// that is about to end goes alone: the others would have no more time for their answer than it has.
watchdog::batch watchdog::take_due(node_id node, time_point now) {
  const auto& waiting = queues_[node].due;
  batch due;
  nanoseconds patience{};
  const auto take = [&](hold& h) {
    const auto its = patience_of(h, now);
    if (due.empty()) patience = its;
    if (its < patience / 2 || its > patience * 2) return;
    HOLDFAST_ASSERT(!h.renewing && !h.ended());
    unschedule_renewal(h);
    h.renewing = true;
    due.push_back(h.shared_from_this());
  };
  for (auto next = waiting.begin(); next != waiting.end() && due.size() < batch_size;) take(*(next++)->second);
  for (auto next = renewals_.begin(); next != renewals_.end() && due.size() < batch_size;) {
    const auto [when, h] = *next++;
    if (when > now + nanoseconds(h->ttl()) / 60) break;
    if (node_of(*h) == node) take(*h);
  }
  HOLDFAST_ASSERT(!due.empty());
  return due;
}

void watchdog::send(node_id node, batch holds) {
  const auto now = around_.now();
  auto patience = nanoseconds::max();
  std::vector<renewal> asked;
  asked.reserve(holds.size());
  for (const auto& h : holds) {
    const auto ttl = h->wants_renewal(now) ? h->ttl() : ttl_that_never_raises;
    asked.push_back({h->keys->lock, h->field, h->ttl_to_send(ttl, around_.settings.drift)});
    patience = std::min(patience, patience_of(*h, now));
  }
  std::vector<milliseconds> ttls;
  ttls.reserve(asked.size());
  for (const auto& a : asked) ttls.push_back(a.wanted.ttl);
  auto call = scripts::renew(asked);
  const auto batch_of = std::make_shared<const batch>(std::move(holds));
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

void watchdog::answered(node_id node, const batch& holds, const std::vector<milliseconds>& ttls, const outcome& o) {
  auto said = o.error ? answer<std::vector<bool>>{} : read_renew(o.reply, holds.size());
  if (said.error && !said.error->retry && holds.size() > 1) return send_alone(node, holds);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    hold& h = *holds[i];
    h.renewing = false;
    if (h.ended() || !h.expires_at) continue;
    if (o.error) {
      on_unanswered(h, o.error, o.detail);
    } else if (said.error) {
      on_unanswered(h, said.error->code, said.error->text);
    } else if (said.value[i]) {
      on_confirmed(h, o.sent, ttls[i]);
    } else {
      forget(h);
      on_lost_(h, errc::lost);
    }
  }
}

// It may still be answered, and counts then.
void watchdog::on_late(const batch& holds, const error_code& why, const std::string& detail) {
  for (const auto& h : holds)
    if (h->renewing && !h->ended() && h->expires_at) doubt(*h, why, detail);
}

// One of them may be what is refused (a key that the user may not touch): the others must not go with it.
void watchdog::send_alone(node_id node, const batch& holds) {
  for (const auto& h : holds) {
    h->renewing = !h->ended() && h->expires_at;
    if (h->renewing) send(node, {h});
  }
}

void watchdog::on_confirmed(hold& h, time_point sent, milliseconds ttl) {
  const auto now = around_.now();
  // It may have waited to be written. A hold ends a TTL after its max_hold all the same.
  const auto from = std::min(sent, h.renewed_until());
  // Loss is sticky: what is confirmed after the validity was over is lost all the same. expire_due() says so.
  if (now >= h.valid_until() || !h.extend(valid_until(from, ttl, around_.settings.drift))) return;
  restore(h);
  plan_next(h, sent);
  if (const auto by = std::exchange(h.confirm_by, std::nullopt)) confirm_soon(h, *by - now);
}

void watchdog::doubt(hold& h, const error_code& why, const std::string& detail) {
  around_.report(event::kind::renewal_failed, h, why, detail);
  suspend(h, why);
}

void watchdog::on_unanswered(hold& h, const error_code& why, const std::string& detail) {
  doubt(h, why, detail);
  const auto now = around_.now();
  const auto left = std::max<nanoseconds>(h.valid_until() - now, milliseconds(2));
  const auto pause = std::min<nanoseconds>(renewal_retry_pause(h.ttl()), left / 2);
  schedule_renewal(h, now + pause - around_.random.up_to(pause / 5));
}

void watchdog::suspend(hold& h, const error_code& why) {
  if (h.state() != lease_state::held) return;
  h.enter(lease_state::suspended);
  around_.report(event::kind::suspended, h, why);
}

void watchdog::expire_due() {
  const auto now = around_.now();
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    hold& h = *expiries_.begin()->second;
    if (h.valid_until() > now) {  // renewed since
      expiries_.erase(expiries_.begin());
      h.expires_at = h.valid_until();
      expiries_.emplace(*h.expires_at, &h);
    } else {
      const auto keep = h.shared_from_this();
      forget(h);
      on_lost_(h, errc::lost);
    }
  }
  rearm();
}

void watchdog::restore(hold& h) {
  if (h.state() != lease_state::suspended) return;
  h.enter(lease_state::held);
  around_.report(event::kind::restored, h);
}

std::size_t watchdog::due() const noexcept {
  std::size_t all = 0;
  for (const auto& [node, q] : queues_) all += q.due.size();
  return all;
}

// An alarm that is early does no harm and corrects itself; so it is not moved for every hold that comes and goes.
void watchdog::rearm() {
  HOLDFAST_ASSERT(renewals_.size() + due() <= expiries_.size());
  const auto arm = [](timer& alarm, const order& what, auto action) {
    if (what.empty()) return alarm.stop();
    const auto first = what.begin()->first;
    if (!alarm.due() || *alarm.due() > first) alarm.start(first, action);
  };
  // What is due already goes on with the next answer, or with the link.
  arm(renewal_alarm_, renewals_, [this] { renew_due(); });
  arm(expiry_alarm_, expiries_, [this] { expire_due(); });
}

}  // namespace holdfast::detail
