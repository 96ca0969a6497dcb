// SPDX-License-Identifier: BSL-1.0
#include "sync/watchdog.hpp"

#include <algorithm>
#include <string>

#include "base/assert.hpp"
#include "sync/hold.hpp"
#include "sync/script_command.hpp"

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

bool watchdog::older(const claim& a, const claim& b) noexcept { return a.field < b.field; }

bool watchdog::older(const share& a, const share& b) noexcept {
  return &a.of == &b.of ? a.node < b.node : older(a.of, b.of);
}

/// One script that renews many shares of a server.
class watchdog::batch final : public script_command {
 public:
  batch(watchdog& whose, node_id at, watchdog::shares which) : node(at), shares(std::move(which)), of_(whose) {
    asked.reserve(shares.size());
  }

  const node_id node;
  const watchdog::shares shares;
  std::vector<renewal> asked;  // one for each

 private:
  void on_answer(const outcome& o) override {
    of_.answered(*this, o);
    of_.renew_due();
  }
  void late(const outcome& o) override { of_.on_late(*this, o.error, o.detail); }

  watchdog& of_;
};

watchdog::watchdog(surroundings& around, lose on_lost)
    : around_(around), on_lost_(std::move(on_lost)), renewal_alarm_(around.alarms), expiry_alarm_(around.alarms) {}

void watchdog::guard(claim& c, time_point sent, time_point now) {
  HOLDFAST_ASSERT(c.holder());
  if (!guarded(c)) {
    expire_at(c, c.valid_until());
    guarded_shares_ += c.shares().size();
  }
  for (auto& s : c.shares()) {
    restore(s);
    if (!in_flight(s)) plan_next(s, sent, now);
  }
  rearm();
}

void watchdog::forget(claim& c) {
  if (!guarded(c)) return;
  for (auto& s : c.shares()) unschedule_renewal(s);
  expiries_.erase(expiries_.iterator_to(c));
  guarded_shares_ -= c.shares().size();
  rearm();
}

void watchdog::confirm_soon(claim& c, nanoseconds patience) {
  if (!guarded(c)) return;
  const auto by = around_.now() + patience;
  for (auto& s : c.shares()) confirm_soon(s, by);
  rearm();
}

void watchdog::confirm_soon(share& s, time_point by) {
  if (in_flight(s)) {
    s.plan = {by, stage::doubted_in_flight};  // it may have been answered before there was a doubt
  } else if (s.plan.now == stage::none || (s.plan.now == stage::scheduled && s.plan.when > by)) {
    schedule_renewal(s, by);
  }
}

void watchdog::link_changed(node_id node, bool up) {
  queues_[node].up = up;
  const auto now = around_.now();
  for (auto& c : expiries_)
    for (auto& s : c.shares()) {
      if (s.node != node) continue;
      if (!up) {
        suspend(s, errc::unreachable);
      } else if (!in_flight(s) && s.plan.now != stage::due) {
        schedule_renewal(s, now);
      }
    }
  if (up) return renew_due();
  rearm();
}

void watchdog::schedule_renewal(share& s, time_point when) {
  HOLDFAST_ASSERT(holder_of(s).count() > 0 && !in_flight(s));
  unschedule_renewal(s);
  s.plan.now = stage::scheduled;
  s.plan.when = when;
  renewals_.insert(renewals_.end(), s);
}

void watchdog::unschedule_renewal(share& s) {
  if (!s.hook.is_linked()) return;
  auto& where = s.plan.now == stage::due ? queues_.at(s.node).due : renewals_;
  where.erase(where.iterator_to(s));
  s.plan.now = stage::none;
}

void watchdog::plan_next(share& s, time_point sent, time_point now) {
  auto& h = holder_of(s);
  if (h.pause_renewal_unless([&] { return h.wants_renewal(now); })) return unschedule_renewal(s);
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
  for (std::size_t n = 0; n < collected_at_once && !renewals_.empty() && renewals_.begin()->plan.when <= now; ++n) {
    share& s = *renewals_.begin();
    unschedule_renewal(s);
    s.plan.now = stage::due;
    s.plan.when = s.valid_until();
    queues_[s.node].due.insert(s);
  }
}

// Half of what is left at most: then its holder hears of the doubt in time.
nanoseconds watchdog::patience_of(const share& s, time_point now) const {
  const auto half = (s.of.valid_until() - now) / 2;
  return std::max<nanoseconds>(std::min(command_budget(around_.settings, holder_of(s).ttl()), half), milliseconds(1));
}

// A renewal that is due soon goes along: ten thousand leases taken one after the other share a hundred commands. A
// claim that is about to end goes alone: the others would have no more time for their answer than it has.
watchdog::shares watchdog::take_due(node_id node, time_point now) {
  auto& waiting = queues_[node].due;
  shares due;
  nanoseconds patience{};
  const auto take = [&](share& s) {
    const auto its = patience_of(s, now);
    if (due.empty()) patience = its;
    if (its < patience / 2 || its > patience * 2) return;
    if (!due.empty() && &s.of.keys->of.layout != &due.front()->of.keys->of.layout) return;
    HOLDFAST_ASSERT(!in_flight(s) && guarded(s.of));
    unschedule_renewal(s);
    s.plan.now = stage::in_flight;
    due.emplace_back(&s);
  };
  for (auto next = waiting.begin(); next != waiting.end() && due.size() < batch_size;) take(*next++);
  for (auto next = renewals_.begin(); next != renewals_.end() && due.size() < batch_size;) {
    auto& s = *next++;
    if (s.plan.when > now + nanoseconds(holder_of(s).ttl()) / 60) break;
    if (s.node == node) take(s);
  }
  HOLDFAST_ASSERT(!due.empty());
  return due;
}

void watchdog::send(node_id node, shares which) {
  const auto now = around_.now();
  auto patience = nanoseconds::max();
  const auto b = std::make_shared<batch>(*this, node, std::move(which));
  for (const auto& s : b->shares) {
    const auto& h = holder_of(*s);
    const auto ttl = h.wants_renewal(now) ? h.ttl() : ttl_that_never_raises;
    b->asked.push_back({h.keys()->lock, h.field(), s->ttl_to_send(ttl, now, around_.settings.drift)});
    patience = std::min(patience, patience_of(*s, now));
  }
  ++queues_[node].in_flight;
  b->script_command::send(around_.servers, b->shares.front()->of.keys->of.renew.make(b->asked),
                          {.timeout = patience, .rank = urgency::obligation, .patient = true, .tell_late = true});
}

void watchdog::answered(const batch& b, const outcome& o) {
  auto& in_flight = queues_[b.node].in_flight;
  HOLDFAST_ASSERT(in_flight > 0);
  --in_flight;
  const auto said = b.shares.front()->of.keys->of.renew.read(o, b.shares.size());
  if (!o.error && said.failed && !said.failed->mends_itself() && b.shares.size() > 1) return send_alone(b);
  for (std::size_t i = 0; i < b.shares.size(); ++i) {
    share& s = *b.shares[i];
    const bool doubted = std::exchange(s.plan.now, stage::none) == stage::doubted_in_flight;
    if (!guarded(s.of)) continue;
    if (o.error) {
      on_unanswered(s, o.error, o.detail);
    } else if (said.failed) {
      on_unanswered(s, said.failed->code, said.failed->detail);
    } else if (said.value[i]) {
      on_confirmed(s, o.sent, b.asked[i].wanted.ttl, doubted);
    } else {
      tell_loss(s.of);
    }
  }
}

// It may still be answered, and counts then.
void watchdog::on_late(const batch& b, const error_code& why, const std::string& detail) {
  for (const auto& s : b.shares)
    if (in_flight(*s) && guarded(s->of)) doubt(*s, why, detail);
}

// One of them may be what is refused (a key that the user may not touch): the others must not go with it.
void watchdog::send_alone(const batch& b) {
  for (const auto& s : b.shares) {
    if (!guarded(s->of)) s->plan.now = stage::none;
    if (in_flight(*s)) send(b.node, {s});
  }
}

void watchdog::on_confirmed(share& s, time_point sent, milliseconds ttl, bool doubted) {
  const auto now = around_.now(), once_more = s.plan.when;
  // It may have waited to be written. A hold ends a TTL after its max_hold all the same.
  const auto from = std::min(sent, holder_of(s).renewed_until());
  // Loss is sticky: what is confirmed after the validity was over is lost all the same. expire_due() says so.
  if (now >= s.of.valid_until() || !s.of.confirm(s, valid_until(from, ttl, around_.settings.drift))) return;
  restore(s);
  plan_next(s, sent, now);
  if (doubted) confirm_soon(s, once_more);
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

void watchdog::expire_at(claim& c, time_point when) {
  if (guarded(c)) expiries_.erase(expiries_.iterator_to(c));
  c.expires_at = when;
  expiries_.insert(expiries_.end(), c);  // most often the last
}

void watchdog::expire_due() {
  const auto now = around_.now();
  while (!expiries_.empty() && expiries_.begin()->expires_at <= now) {
    claim& c = *expiries_.begin();
    if (c.valid_until() > now) {
      expire_at(c, c.valid_until());  // renewed since
    } else {
      tell_loss(c);
    }
  }
  rearm();
}

void watchdog::tell_loss(claim& c) {
  const claim_ptr keep(&c);
  forget(c);
  on_lost_(c);
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
  const auto arm = [](timer& alarm, bool any, auto first, auto action) {
    if (!any) return alarm.stop();
    const auto when = first();
    if (!alarm.due() || *alarm.due() > when) alarm.start(when, action);
  };
  // What is due already goes on with the next answer, or with the link.
  arm(
      renewal_alarm_, !renewals_.empty(), [this] { return renewals_.begin()->plan.when; }, [this] { renew_due(); });
  arm(
      expiry_alarm_, !expiries_.empty(), [this] { return expiries_.begin()->expires_at; }, [this] { expire_due(); });
}

}  // namespace holdfast::detail
