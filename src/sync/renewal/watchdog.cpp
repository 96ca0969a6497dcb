// SPDX-License-Identifier: BSL-1.0
#include "sync/renewal/watchdog.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "base/prefetch.hpp"
#include "protocol/replies.hpp"
#include "sync/command/script_command.hpp"
#include "sync/hold/hold.hpp"
#include "topology/cluster/slots.hpp"

namespace holdfast::detail {
namespace {

constexpr std::size_t batch_size = 100;
/// More renewals would wait in the server's queue or in ours, where they cannot be overtaken by what has become more
/// urgent.
constexpr std::size_t most_in_flight = 16 * batch_size;
/// Others have their turn on the strand before more of what is due is looked at.
constexpr std::size_t collected_at_once = 1000;

/// Of so many shares the renewals are spread over their period. Fewer are cheaper together.
constexpr std::size_t crowd = 1000;

}  // namespace

bool watchdog::older(const claim& a, const claim& b) noexcept { return a.field < b.field; }

bool watchdog::older(const share& a, const share& b) noexcept {
  return &a.of == &b.of ? a.node < b.node : older(a.of, b.of);
}

/// One script that renews many shares of a server.
class watchdog::batch final : public script_command {
 public:
  batch(watchdog& whose, node_id at, watchdog::shares&& which) noexcept
      : node(at), shares(std::move(which)), of_(whose) {}

  const node_id node;
  const watchdog::shares shares;
  boost::container::small_vector<renewal, 1> asked;  // one for each
  unsigned replicas = 0;                             // the most that one of them wants

 private:
  void on_answer(const outcome& o) override {
    each_step step;
    step([&] { of_.answered(*this, o); });
    step([this] { of_.renew_due(); });
    step.rethrow();
  }
  void late(const outcome& o) override { of_.on_late(*this, o.error, o.detail); }

  watchdog& of_;
};

watchdog::watchdog(surroundings& around, lose on_lost)
    : around_(around), on_lost_(std::move(on_lost)), renewal_alarm_(around.alarms), expiry_alarm_(around.alarms) {}

void watchdog::guard(claim& c, time_point sent, time_point now, primary_set at) {
  guard(c, sent, now, at, rhythm::begun);
}

void watchdog::guard_on(claim& c, time_point now) { guard(c, now, now, c.trusted_at(), rhythm::kept); }

void watchdog::guard(claim& c, time_point sent, time_point now, primary_set at, rhythm how) {
  HOLDFAST_ASSERT(c.holder());
  const bool begins = !guarded(c);
  if (begins) {
    expire_at(c, c.valid_until());
    guarded_shares_ += c.shares().size();
  }
  for (std::size_t n = 0; n < c.shares().size(); ++n) {
    auto& s = c.shares()[n];
    const bool confirmed = (at & only(n)) != 0;
    if (confirmed) restore(s);
    if (!confirmed && begins) c.doubt(s);  // nobody knows yet what it has
    if (in_flight(s) || s.denied()) continue;
    // A pause is kept, and so is the renewal that settles a doubt: what is confirmed now may have run before that.
    const bool stands = !confirmed ? s.doubted() : s.of.in_doubt;
    if (!begins && stands && s.stage != stage::none) continue;
    // One that nobody has heard of is asked in its turn; not before its server was there, nor put off.
    const bool first = !s.confirmed() && begins && queues_[s.node].known;
    if (begins && how == rhythm::kept && s.doubted()) {
      schedule_renewal(s, now + renewal_retry_pause(s.of.wanted.ttl));
    } else if (s.confirmed() || first) {
      plan_next(s, sent, now, begins ? how : rhythm::kept);
    }
  }
  rearm();
}

void watchdog::forget(claim& c) {
  if (!guarded(c)) return;
  for (auto& s : c.shares()) unschedule_renewal(s);
  expiries_.erase(c);
  guarded_shares_ -= c.shares().size();
  if (idle()) rearm();  // else it comes in vain, perhaps
}

void watchdog::denied(share& s) {
  if (!guarded(s.of)) return static_cast<void>(s.of.deny(s));
  unschedule_renewal(s);
  on_denied(s, renewal_answer::denied);
  rearm();
}

void watchdog::confirm_soon(claim& c, nanoseconds patience) {
  if (!guarded(c)) return;
  const auto by = around_.now() + patience;
  for (auto& s : c.shares())
    if (!s.denied()) confirm_soon(s, by);
  rearm();
}

void watchdog::confirm_soon(share& s, time_point by) {
  if (in_flight(s)) {
    s.renewal = by;
    s.stage = stage::doubted_in_flight;  // it may have been answered before there was a doubt
  } else if (s.stage == stage::none || (s.stage == stage::scheduled && s.renewal > by)) {
    schedule_renewal(s, by);
  }
}

void watchdog::link_changed(node_id node, bool up) {
  queues_[node].up = up;
  queues_[node].known |= up;
  const auto now = around_.now();
  expiries_.each([&](claim& c) {
    for (auto& s : c.shares()) {
      if (s.denied() || home_of(s) != node) continue;
      if (!up) {
        suspend(s, errc::unreachable);
      } else if (!in_flight(s) && !is_due_at(s, node)) {
        schedule_renewal(s, now);
      }
    }
  });
  if (up) return renew_due();
  rearm();
}

// Most often nothing is doubted and every node is up: slots move under load by the hundred.
void watchdog::keys_moved() {
  const auto down = [](const auto& each) { return !each.second.up; };
  if (!any_doubted_ && std::none_of(queues_.begin(), queues_.end(), down)) return;
  any_doubted_ = false;
  const auto now = around_.now();
  expiries_.each([&](claim& c) {
    for (auto& s : c.shares()) {
      if (!in_flight(s) && !s.denied()) {
        const auto home = home_of(s);
        const bool up = is_up(home), due = s.stage == stage::due;
        if (!up) suspend(s, errc::unreachable);
        if (due ? s.node != home : up && s.doubted()) schedule_renewal(s, now);
      }
      any_doubted_ |= s.doubted();
    }
  });
  // A node that is gone for good is not looked for at each move.
  std::erase_if(queues_, [&](const auto& each) {
    const auto& q = each.second;
    return down(each) && !any_doubted_ && q.due.empty() && q.in_flight == 0;
  });
  renew_due();
}

node_id watchdog::home_of(const share& s) const {
  return around_.servers.primaries() > 1 ? s.node : around_.servers.node_of(s.of.keys->lock);
}

bool watchdog::is_up(node_id node) const {
  const auto found = queues_.find(node);
  return found == queues_.end() || found->second.up;
}

bool watchdog::wanted(const share& s, time_point now) const {
  return s.of.wanted.for_good || holder_of(s).wants_renewal(now);
}

void watchdog::schedule_renewal(share& s, time_point when) {
  HOLDFAST_ASSERT(holder_of(s).count() > 0 && !in_flight(s));
  unschedule_renewal(s);
  s.stage = stage::scheduled;
  s.renewal = when;
  renewals_.insert(s);
}

void watchdog::unschedule_renewal(share& s) {
  if (!s.hook.is_linked()) return;
  if (s.stage == stage::due) {
    auto& waiting = queues_.at(s.node).due;
    waiting.erase(waiting.iterator_to(s));
  } else {
    renewals_.erase(s);
  }
  s.stage = stage::none;
}

void watchdog::plan_next(share& s, time_point sent, time_point now, rhythm how) {
  const auto still_wanted = [&] { return wanted(s, now); };
  if (!s.of.wanted.for_good && holder_of(s).pause_renewal_unless(still_wanted)) return unschedule_renewal(s);
  const milliseconds ttl = s.of.wanted.ttl;
  // What was sent for a shorter TTL may not have extended the validity.
  const auto by_its_word = s.valid_until() - (ttl - drift_of(ttl, around_.settings.drift));
  const auto confirmed = s.confirmed() ? std::min(sent, by_its_word) : sent;
  const nanoseconds period = nanoseconds(ttl) / 3;
  const bool spread = how == rhythm::begun && guarded_shares_ > crowd;
  schedule_renewal(s, confirmed + period - around_.random.up_to(spread ? period : period / 20));
}

void watchdog::renew_due() {
  const auto now = around_.now();
  collect_due(now);
  for (auto& [node, q] : queues_)
    while (q.up && q.in_flight < most_in_flight && !q.due.empty()) send_by_group(node, take_due(node, now));
  rearm();
}

void watchdog::collect_due(time_point now) {
  for (std::size_t n = 0; n < collected_at_once; ++n) {
    auto* const s = renewals_.first_until(now);
    if (!s) return;
    const auto home = home_of(*s);
    auto& waiting = queues_[home].due;
    unschedule_renewal(*s);
    s->stage = stage::due;
    s->renewal = s->valid_until();
    s->node = home;
    waiting.insert(*s);
  }
}

// Half of what is left at most: then its holder hears of the doubt in time.
nanoseconds watchdog::patience_of(const share& s, time_point now) const {
  const auto half = (s.of.valid_until() - now) / 2;
  return std::max<nanoseconds>(std::min(command_budget(around_.settings, s.of.wanted.ttl), half), milliseconds(1));
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
    if (!if_memory([&] { due.emplace_back(&s); })) return;  // the first needs none
    unschedule_renewal(s);
    s.stage = stage::in_flight;
  };
  for (auto next = waiting.begin(); next != waiting.end() && due.size() < batch_size;) take(*next++);
  const auto soon = now + nanoseconds(due.front()->of.wanted.ttl) / 60;
  for (auto* next = renewals_.first_until(soon); next && due.size() < batch_size;) {
    auto& s = *std::exchange(next, renewals_.next_until(*next, soon));
    if (next) prefetch(*next->of.keys);
    if (s.renewal > now + nanoseconds(s.of.wanted.ttl) / 60) break;
    if (s.node == node && home_of(s) == node) take(s);
  }
  HOLDFAST_ASSERT(!due.empty());
  return due;
}

key_group watchdog::group_of(const share& s) const {
  const auto& key = s.of.keys->lock;
  return by_slot_ ? slot_of(key) : around_.servers.group_of(key);
}

// One after the other: all of them are written at once.
void watchdog::send_by_group(node_id node, shares&& which) {
  const auto first = group_of(*which.front());
  if (std::all_of(which.begin() + 1, which.end(), [&](const share_ptr& s) { return group_of(*s) == first; }))
    return send(node, std::move(which));
  std::vector<std::pair<key_group, share_ptr>> grouped;
  const auto now = around_.now();
  if (!if_memory([&] { grouped.reserve(which.size()); })) return put_off(which, now);
  for (auto& s : which) grouped.emplace_back(group_of(*s), std::move(s));
  std::stable_sort(grouped.begin(), grouped.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto next = grouped.begin(); next != grouped.end();) {
    shares together;
    const auto group = next->first;
    for (; next != grouped.end() && next->first == group; ++next)
      if (!if_memory([&] { together.push_back(next->second); })) put_off(*next->second, now);
    send(node, std::move(together));
  }
}

void watchdog::send(node_id node, shares&& which) {
  const auto now = around_.now();
  std::shared_ptr<batch> b;
  bool counted = false;
  const bool sent = if_memory([&] {
    b = make_pooled<batch>(around_.blocks, *this, node, std::move(which));
    b->asked.reserve(b->shares.size());
    auto patience = nanoseconds::max();
    for (const auto& s : b->shares) {
      const auto& c = s->of;
      const milliseconds ttl = wanted(*s, now) ? milliseconds(c.wanted.ttl) : ttl_that_never_raises;
      b->asked.push_back({c.keys->lock, c.field, s->ttl_to_send(ttl, now, around_.settings.drift)});
      b->replicas = std::max<unsigned>(b->replicas, c.wanted.min_replicas);
      patience = std::min(patience, patience_of(*s, now));
    }
    queues_[node].in_flight += b->shares.size();
    counted = true;
    b->script_command::send(around_.servers.primary(node),
                            b->shares.front()->of.keys->of.renew.make({b->asked.data(), b->asked.size()}),
                            {.timeout = patience,
                             .rank = urgency::obligation,
                             .patient = true,
                             .tell_late = true,
                             .unhurried = true,
                             .divisible = b->shares.size() > 1});
  });
  if (sent) return;
  if (counted) queues_[node].in_flight -= b->shares.size();
  put_off(b ? b->shares : which, now);
}

// There was no memory to send these renewals: they are sent a little later.
void watchdog::put_off(const shares& which, time_point now) noexcept {
  for (const auto& s : which) put_off(*s, now);
}

void watchdog::put_off(share& s, time_point now) noexcept {
  if (!in_flight(s)) return;
  s.stage = stage::none;
  if (guarded(s.of)) schedule_renewal(s, now + renewal_retry_pause(s.of.wanted.ttl));
}

void watchdog::answered(const batch& b, const outcome& o) {
  auto& in_flight = queues_[b.node].in_flight;
  HOLDFAST_ASSERT(in_flight >= b.shares.size());
  in_flight -= b.shares.size();
  const auto said = b.shares.front()->of.keys->of.renew.read(o, b.shares.size());
  bool apart = false;
  if (said.failed && !if_memory([&] { apart = send_apart(b, o, *said.failed); }))
    return put_off(b.shares, around_.now());
  if (apart) return;
  std::vector<std::size_t> granted;  // which replicas must have
  each_step step;                    // a hold without memory keeps no answer from the others
  for (std::size_t i = 0; i < b.shares.size(); ++i) {
    share& s = *b.shares[i];
    const bool confirmed = !said.failed && said.value[i] == renewal_answer::confirmed;
    if (b.replicas > 0 && confirmed && guarded(s.of) && if_memory([&] { granted.push_back(i); }))
      continue;  // it stays in flight
    const bool doubted = std::exchange(s.stage, stage::none) == stage::doubted_in_flight;
    if (!guarded(s.of)) continue;
    step([&] {
      if (o.error) {
        on_unanswered(s, o.error, o.detail);
      } else if (said.failed) {
        on_unanswered(s, said.failed->code, said.failed->detail);
      } else if (!confirmed) {
        on_denied(s, said.value[i]);
      } else if (b.replicas == 0) {
        on_confirmed(s, o.sent, b.asked[i].wanted.ttl, doubted);
      } else {
        on_unanswered(s, errc::not_replicated, {});
      }
    });
  }
  if (!granted.empty() && !if_memory([&] { wait_for_replicas(b, granted, o); })) put_off(b.shares, around_.now());
  step.rethrow();
}

void watchdog::wait_for_replicas(const batch& b, std::vector<std::size_t> which, const outcome& o) {
  auto valid = time_point::max();
  for (const auto i : which) valid = std::min(valid, b.shares[i]->of.valid_until());
  const std::string_view key = b.asked[which.front()].lock;
  const auto now = around_.now();
  auto done = [this, keep = std::static_pointer_cast<const batch>(b.shared_from_this()), which = std::move(which),
               sent = o.sent](const std::optional<redis::failure>& failed, unsigned had) {
    on_replicas(*keep, which, sent, failed, had);
  };
  const auto deadline = now + replication_budget(around_.settings, valid, now);
  around_.servers.replicated(key, {b.replicas, o.server, deadline}, std::move(done));
}

void watchdog::on_replicas(const batch& b, const std::vector<std::size_t>& which, time_point sent,
                           const std::optional<redis::failure>& failed, unsigned had) {
  for (const auto i : which) {
    share& s = *b.shares[i];
    const bool doubted = std::exchange(s.stage, stage::none) == stage::doubted_in_flight;
    if (!guarded(s.of)) continue;
    const unsigned needed = s.of.wanted.min_replicas;
    const auto too_few = needed == 0 ? std::nullopt : too_few_replicas(failed, had, needed);
    if (too_few) {
      on_unanswered(s, too_few->code, too_few->detail);
    } else {
      on_confirmed(s, sent, b.asked[i].wanted.ttl, doubted);
    }
  }
  renew_due();
}

// It may still be answered, and counts then.
void watchdog::on_late(const batch& b, const error_code& why, const std::string& detail) {
  for (const auto& s : b.shares)
    if (in_flight(*s) && guarded(s->of)) doubt(*s, why, detail);
}

// One of them may be what is refused (a key that the user may not touch): the others must not go with it. Two keys of
// a slot that is on its way to another server cannot be asked for together, but each by itself.
bool watchdog::send_apart(const batch& b, const outcome& o, const failure& why) {
  const bool refused = !o.error && !why.mends_itself();
  if (b.shares.size() == 1 || (!refused && !wants_one_key(o))) return false;
  shares again;
  for (const auto& s : b.shares) {
    if (!guarded(s->of)) s->stage = stage::none;
    if (in_flight(*s)) again.push_back(s);
  }
  const bool learns = wants_one_slot(o) && !std::exchange(by_slot_, true);
  if (learns && !again.empty()) {
    send_by_group(b.node, std::move(again));
  } else {
    for (auto& s : again) send(b.node, {std::move(s)});
  }
  return true;
}

void watchdog::on_confirmed(share& s, time_point sent, milliseconds ttl, bool doubted) {
  const auto now = around_.now(), once_more = s.renewal;
  // It may have waited to be written. A hold ends a TTL after its max_hold all the same.
  const auto from = s.of.wanted.for_good ? sent : std::min(sent, holder_of(s).renewed_until());
  const auto left = s.of.valid_until() - now;
  // Loss is sticky: what is confirmed after the validity was over is lost all the same. expire_due() says so.
  if (now >= s.of.valid_until() || !s.of.confirm(s, valid_until(from, ttl, around_.settings.drift))) return;
  count_renewal(s, left);
  plan_next(s, sent, now, restore(s) ? rhythm::begun : rhythm::kept);
  if (doubted) return confirm_soon(s, once_more);
  if (s.of.shares().size() == 1) s.of.in_doubt = false;  // of several, one alone does not know
}

void watchdog::count_renewal(const share& s, nanoseconds left) const {
  if (!around_.settings.observer) return;
  around_.settings.observer->measured({.what = measurement::kind::renewed,
                                       .lock_kind = s.of.keys->of.name,
                                       .name = s.of.keys->name,
                                       .left = left,
                                       .ttl = s.of.wanted.ttl});
}

// What a majority of several has is ours all the same.
void watchdog::on_denied(share& s, renewal_answer why) {
  if (!s.of.deny(s)) {
    holder_of(s).denied(why);
    return tell_loss(s.of);
  }
  expire_at(s.of, s.of.valid_until());  // which may be sooner
  suspend(s, errc::lost);
}

void watchdog::doubt(share& s, const error_code& why, const std::string& detail) {
  // One of several primaries that is gone for long is told of once.
  const bool news = s.of.shares().size() == 1 || !s.doubted();
  if (news) holder_of(s).report(event::kind::renewal_failed, why, detail);
  suspend(s, why);
}

void watchdog::on_unanswered(share& s, const error_code& why, const std::string& detail) {
  if_memory([&] { doubt(s, why, detail); });
  const auto now = around_.now();
  const auto left = std::max<nanoseconds>(s.of.valid_until() - now, milliseconds(2));
  const auto pause = std::min<nanoseconds>(renewal_retry_pause(s.of.wanted.ttl), left / 2);
  // One that has moved meanwhile was asked for at a server that may not have it any more.
  schedule_renewal(s, home_of(s) != s.node ? now : now + pause - around_.random.up_to(pause / 5));
}

void watchdog::suspend(share& s, const error_code& why) {
  any_doubted_ = true;
  const bool over = s.of.left() == nanoseconds::zero();  // then it is lost, and expire_due() says so
  if (!over && s.of.doubt(s)) holder_of(s).report(event::kind::suspended, why);
}

bool watchdog::restore(share& s) {
  if (!s.doubted() || s.of.left() == nanoseconds::zero()) return false;
  if (s.of.trust(s)) holder_of(s).report(event::kind::restored);
  return true;
}

void watchdog::expire_at(claim& c, time_point when) {
  if (guarded(c)) expiries_.erase(c);
  c.expires_at = when;
  expiries_.insert(c);
}

void watchdog::expire_due() {
  const auto now = around_.now();
  while (auto* const c = expiries_.first_until(now)) {
    if (c->valid_until() > now) {
      expire_at(*c, c->valid_until());  // renewed since
    } else {
      tell_loss(*c);
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
  const auto arm = [](timer& alarm, time_point when, auto action) {
    if (when == time_point::max()) return alarm.stop();
    if (!alarm.due() || *alarm.due() > when) alarm.start(when, action);
  };
  // What is due already goes on with the next answer, or with the link.
  arm(renewal_alarm_, renewals_.earliest(), [this] { renew_due(); });
  arm(expiry_alarm_, expiries_.earliest(), [this] { expire_due(); });
}

}  // namespace holdfast::detail
