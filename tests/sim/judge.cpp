// SPDX-License-Identifier: BSL-1.0
#include "sim/judge.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view token_keys = "redisson_lock_token:";

/// How often this owner holds the lock that is stored so.
std::size_t count_of(const keyspace::entry& e, std::string_view owner) {
  if (const auto* text = e.text()) return *text == owner ? 1 : 0;
  const auto* count = e.hash()->find(owner);
  return count ? std::stoull(*count) : 0;
}

/// Whoever holds the lock that is stored so.
template <class Use>
void each_owner(const std::string& key, const keyspace::entry& e, Use use) {
  if (key.starts_with(token_keys)) return;
  if (const auto* text = e.text()) return use(*text);
  for (const auto& [owner, count] : e.hash()->fields()) use(owner);
}

/// The longest pause before a retry: the cap of the library's retry_backoff, of renewal_retry_pause(), and
/// attempt_pacing::hopeless.
constexpr nanoseconds retry = 1s;
/// Until a wake-up is followed, after many that came in vain.
constexpr nanoseconds wake_up = detail::wake_budget::interval;
/// A message, a new connection with its handshake, a command that the node has forgotten and its repetition: ten ways
/// of 3 ms at most each.
constexpr nanoseconds journey = 30ms;

/// An attempt to connect that fails in its own time, and the longest pause before the next.
nanoseconds reconnection(const config& c) { return c.connect_timeout + c.reconnect_cap; }

/// A waiter sleeps for the TTL that the node has told, and no longer than this.
nanoseconds longest_sleep(const config& c) { return c.poll_cap; }

/// By its own clock, which may be the slower one.
nanoseconds late_by_clock(const config& c) {
  return std::chrono::duration_cast<nanoseconds>(longest_sleep(c) * c.drift);
}

}  // namespace

judge::judge(scheduler& plan, server& node, coverage& met) : plan_(plan), server_(node), met_(met) {}

void judge::add(sim_client& c) { clients_.push_back({&c, plan_.now()}); }

judge::client_record& judge::watched(const sim_client& c) {
  return *std::find_if(clients_.begin(), clients_.end(), [&](const auto& each) { return each.who == &c; });
}

std::uint64_t judge::begin(const sim_client& by, std::string what) {
  calls_.emplace(++last_call_, call_record{&by, std::move(what), {}, plan_.now()});
  return last_call_;
}

std::uint64_t judge::begin_wait(const sim_client& by, std::vector<std::string> names, std::string what) {
  const auto id = begin(by, std::move(what));
  calls_.at(id).waits_for = std::move(names);
  return id;
}

void judge::answered(std::uint64_t call) {
  if (calls_.erase(call) == 0) accuse("call " + std::to_string(call), "was answered twice");
}

void judge::begin_close(const sim_client& by, nanoseconds grace) {
  if (plan_.now() > undisturbed_from(by) && grace > journey) watched(by).closing_in_peace = plan_.now();
}

void judge::closed(const sim_client& by) {
  auto& c = watched(by);
  if (const auto wrong = by.miscounted(); !wrong.empty()) accuse(by.name(), wrong);
  c.closed_in_peace = c.closing_in_peace && c.clear_since < *c.closing_in_peace;
  if (c.closed_in_peace) met_.hit("close: nothing in the way");
}

void judge::granted_any(sim_client& to, const record_ptr& lease, bool fenced) {
  if (lease->of->count() != 1) accuse(to.name(), "has re-entered " + lease->of->keys()->name + ", one of several");
  granted(to, lease, fenced);
}

void judge::granted(sim_client& to, const record_ptr& lease, bool fenced) {
  const auto now = plan_.now();
  const auto& h = lease->of;
  if (!std::string_view(h->field().to_text()).starts_with(to.uuid()))
    accuse("the simulator", "does not know the uuid of " + to.name());
  if (std::none_of(holds_.begin(), holds_.end(), [&](const auto& each) { return each.of == h; })) {
    holds_.push_back({&to, h, now, now, {}, 1, {}, {}, false, false});
    if (h->valid_until() - now < detail::min_validity(lease->asked.ttl))
      accuse(to.name(), "was granted " + h->keys()->name + " too late to use it");
    if (h->token && !fenced) accuse(to.name(), "has a token of " + h->keys()->name + " that it did not ask for");
    const auto given = token_of_.find(std::string(std::string_view(h->field().to_text())));
    if (h->token && (given == token_of_.end() || given->second != *h->token))
      accuse(to.name(), "has a token that the node did not give it");
  }
  if (fenced && !h->token) accuse(to.name(), "was granted " + h->keys()->name + " without a token");
  const auto watch = leases_.insert(leases_.end(), {&to, lease, {}, 0, {}, false, false});
  to.locks().when_ended(lease, [this, watch](error_code why) {
    watch->told = why;
    if (++watch->times > 1)
      accuse(watch->by->name(), "was told twice of the end of its lease of " + watch->lease->of->keys()->name);
    const bool lost = why != errc::not_held;
    met_.hit(!lost                       ? "lease ended: not_held"
             : why == errc::lost         ? "lease ended: lost"
             : why == errc::closed       ? "lease ended: closed"
             : why == errc::corrupt_lock ? "lease ended: corrupt_lock"
                                         : "lease ended: otherwise");
    // unlock() finds out that a lease is lost: both at once.
    if (lost && watch->released && watch->released_at != plan_.now())
      accuse(watch->by->name(),
             "was told of the loss of a lease that it had released: " + watch->lease->of->keys()->name);
    if (!lost && !watch->released)
      accuse(watch->by->name(), "was told not_held of a lease that it has: " + watch->lease->of->keys()->name);
  });
}

void judge::refused_for_good(const std::string& name, const std::string& field) {
  for (auto& [id, call] : calls_)
    if (call.waits_for.size() > 1 && field.starts_with(call.by->uuid())) std::erase(call.waits_for, name);
}

void judge::token_given(const std::string& name, const std::string& field, std::uint64_t token) {
  auto& last = tokens_[name];
  const bool repeated = token == last.token && field == last.field;
  const bool clock_is_behind = server_.clock().now_us() <= static_cast<std::int64_t>(last.token);
  if (token <= last.token && !repeated && !(last.lost && clock_is_behind))
    accuse("the node",
           "gives the token " + std::to_string(token) + " of " + name + " after " + std::to_string(last.token));
  last = {token, field, false};
  token_of_[field] = token;
}

void judge::token_lost(const std::string& name) {
  if (const auto found = tokens_.find(name); found != tokens_.end()) found->second.lost = true;
}

void judge::tokens_lost() {
  for (auto& [name, last] : tokens_) last.lost = true;
}

void judge::lost_to_caller(const sim_client& by, const detail::lock_keys& name, bool has_lease) {
  if (!has_lease) accuse(by.name(), "was told of the loss of " + name.name + ", of which it had no lease");
}

void judge::released(const record_ptr& lease) {
  for (auto& each : leases_)
    if (each.lease == lease && !std::exchange(each.released, true)) each.released_at = plan_.now();
}

void judge::unlocked(const sim_client& by, const detail::lock_keys& name, error_code answer) {
  if (answer == errc::not_held) accuse(by.name(), "was told that it had not held " + name.name + ", which it had");
}

void judge::peer_holds(const std::string& name, const std::string& field, time_point until) {
  peer_released(field);
  peers_.push_back({name, field, until, plan_.now()});
}

void judge::peer_released(const std::string& field) {
  std::erase_if(peers_, [&](const auto& each) { return each.field == field; });
}

void judge::released_in_silence(const std::string& name) { taken_in_silence_[name] = plan_.now(); }

void judge::excuse(const std::string& name, bool told) {
  (name.empty() ? all_excused_ : excused_[name]) = plan_.now();
  if (!told) taken_in_silence_[name] = plan_.now();
}

time_point judge::excused_at(const std::string& name) const {
  const auto found = excused_.find(name);
  return found == excused_.end() ? all_excused_ : std::max(found->second, all_excused_);
}

void judge::trouble(const sim_client* whom, time_point end) {
  for (auto& c : clients_)
    if (!whom || c.who == whom) extend_trouble(c, plan_.now(), end);
}

time_point judge::undisturbed_from(const sim_client& c) {
  return watched(c).clear_since + c.settings().command_timeout + retry + reconnection(c.settings());
}

void judge::extend_trouble(client_record& c, time_point now, time_point end) {
  if (c.clear_since + reconnection(c.who->settings()) < now) c.trouble_began = now;
  c.clear_since = std::max(c.clear_since, end);
}

std::optional<time_point> judge::backed_until(std::string_view name, std::string_view field) const {
  const auto* e = server_.program().keys().find(name);
  if (!e || count_of(*e, field) == 0) return std::nullopt;
  return e->expires ? server_.clock().end_of(*e->expires) : time_point::max();
}

void judge::note_backing() {
  const auto now = plan_.now();
  const auto& keys = server_.program().keys();
  std::erase_if(backing_, [&](const auto& each) { return each.second.front().until < now; });
  for (const auto& [key, e] : keys.all()) {
    if (!keys.find(key)) continue;
    const auto until = e.expires ? server_.clock().end_of(*e.expires) : time_point::max();
    each_owner(key, e, [&](const std::string& field) {
      auto& seen = backing_[{key, field}];
      std::erase_if(seen, [&](const auto& each) { return each.until <= until || each.until < now; });
      seen.push_back({until, now});
    });
  }
}

time_point judge::last_backed(const std::string& name, std::string_view field, time_point until) const {
  const auto found = backing_.find(std::pair(name, std::string(field)));
  if (found == backing_.end()) return time_point::max();
  const auto& seen = found->second;  // the longer, the earlier
  const auto last = std::find_if(seen.rbegin(), seen.rend(), [&](const auto& each) { return each.until >= until; });
  return last == seen.rend() ? time_point::max() : last->seen;
}

void judge::look() {
  note_backing();
  for (auto& c : clients_)
    if (c.who->way().troubled() || c.who->process().paused()) extend_trouble(c, plan_.now(), plan_.now());
  claims_.clear();
  for (auto& h : holds_) look_at(h);
  for (auto& l : leases_) look_at(l);
  for (auto& p : peers_) look_at(p);
  std::erase_if(holds_, [](const auto& h) { return h.over && h.of->count() == 0; });
  leases_.remove_if([](const auto& l) { return l.over; });
  std::erase_if(peers_, [&](const auto& p) { return p.until <= plan_.now(); });
  for (const auto& [name, claimants] : claims_) {
    const auto backed = std::count_if(claimants.begin(), claimants.end(), [](const auto& c) { return c.backed; });
    if (backed > 1) accuse(claimants.front().who + " and " + claimants.back().who, "both hold " + name);
    if (claimants.size() > 1) met_.hit("overlap explained by a fault outside the guarantee");
  }
  look_for_forgotten_waiters();
  look_for_residue();
}

void judge::claim(const std::string& name, const std::string& who, bool backed) {
  claims_[name].push_back({who, backed});
}

void judge::look_at(hold_record& h) {
  const auto now = plan_.now();
  const auto& hold = *h.of;
  if (!hold.exclusive()) {
    h.over = true;
    return;
  }
  if (h.over) accuse(h.by->name(), "claims " + hold.keys()->name + " again after it was over");
  if (!hold.wants_renewal(now)) h.renewed_since = now;
  look_at_suspension(h);
  const auto until = backed_until(hold.keys()->lock, hold.field().to_text());
  const bool covered = until && *until >= hold.valid_until();
  h.longest_ttl = std::max(h.longest_ttl, hold.ttl());
  claim(hold.keys()->name, h.by->name(), covered);
  if (covered) {
    h.uncovered_since.reset();
    return look_at_count(h);
  }
  h.ever_uncovered = true;
  // What was confirmed before the fault may be heard of after it.
  if (excused_at(hold.keys()->name) < last_backed(hold.keys()->lock, hold.field().to_text(), hold.valid_until()))
    accuse(h.by->name(),
           "claims " + hold.keys()->name + (until ? " longer than the node keeps it" : ", which it does not hold"));
  if (!h.uncovered_since) h.uncovered_since = now;
  const auto noticed = std::max({*h.uncovered_since, undisturbed_from(*h.by), h.renewed_since}) +
                       nanoseconds(h.longest_ttl) / 3 + journey;
  if (now > noticed)
    accuse(h.by->name(), "has not noticed in time that " + hold.keys()->name +
                             (until ? " ends before its claim" : " was taken away"));
}

void judge::look_at_suspension(hold_record& h) {
  const auto now = plan_.now();
  if (h.of->state() != lease_state::suspended) return h.suspended_since.reset();
  if (!h.suspended_since) h.suspended_since = now;
  if (now > std::max(*h.suspended_since, undisturbed_from(*h.by)) + journey)
    accuse(h.by->name(), "still doubts its hold of " + h.of->keys()->name);
}

void judge::look_at_count(hold_record& h) {
  const auto& hold = *h.of;
  const auto leases = hold.count();
  h.most_leases = std::max(h.most_leases, leases + (hold.changing() ? 1 : 0));
  // Without fencing a late command of a dead connection may still change it.
  const bool fenced = !known_field(std::string(std::string_view(hold.field().to_text()))).unfenced;
  if (hold.changing() || h.ever_uncovered || leases == 0 || !fenced) return;
  const auto count = count_of(*server_.program().keys().find(hold.keys()->lock), hold.field().to_text());
  const bool undisturbed = watched(*h.by).clear_since < h.granted;
  if (count < leases || count > (undisturbed ? leases : h.most_leases))
    accuse(h.by->name(), "has " + std::to_string(leases) + " leases of " + hold.keys()->name + ", the node counts " +
                             std::to_string(count));
}

void judge::look_at(lease_watch& l) {
  auto& c = *l.by;
  if (l.released || c.closing()) {
    l.over = l.times != 0;
    if (!l.over)
      accuse(c.name(), "was not told that its lease of " + l.lease->of->keys()->name +
                           (l.released ? " was released" : " ended when it was closed"));
    return;
  }
  if (l.lease->of->exclusive()) {
    if (l.times != 0)
      accuse(c.name(), "was told of the loss of " + l.lease->of->keys()->name + " and may believe to hold it");
    return;
  }
  if (c.process().paused()) return;
  if (l.times == 0) accuse(c.name(), "was not told in time that it has lost " + l.lease->of->keys()->name);
}

void judge::look_at(peer_claim& p) {
  if (p.until <= plan_.now()) return;
  const auto until = backed_until(p.name, p.field);
  const bool covered = until && *until >= p.until;
  claim(p.name, "a peer", covered);
  if (covered)
    p.covered_at = plan_.now();
  else if (excused_at(p.name) < p.covered_at)
    accuse("a peer", "was robbed of " + p.name);
}

void judge::look_for_forgotten_waiters() {
  const auto now = plan_.now();
  for (const auto& [id, call] : calls_)
    for (const auto& name : call.waits_for) {
      const bool free = !server_.program().keys().find(name) && !claims_.contains(name);
      auto& since = free_since_[name];
      if (!free)
        since.reset();
      else if (!since)
        since = now;
    }
  for (const auto& [id, call] : calls_)
    for (const auto& name : call.waits_for) {
      if (call.by->closing() || !free_since_.at(name)) continue;
      // Nobody was told of what was taken in silence: it is found by the poll.
      const auto silence = std::max({taken_in_silence_[name], all_excused_, watched(*call.by).message_lost});
      const auto from = std::max({*free_since_.at(name), undisturbed_from(*call.by), call.since,
                                  silence + longest_sleep(call.by->settings())});
      if (now > from + late_by_clock(call.by->settings()) + wake_up + journey)
        accuse(call.by->name(), "waits for " + name + ", which is free: " + call.what);
    }
}

std::string judge::unanswered() const {
  std::string all;
  for (const auto& [id, call] : calls_) all += "\n  " + call.by->name() + ": " + call.what;
  return all;
}

void judge::ran_unfenced(const arguments& command) {
  for (const auto& word : command)
    if (std::any_of(clients_.begin(), clients_.end(), [&](const auto& c) { return word.starts_with(c.who->uuid()); }))
      known_field(word).unfenced = true;
}

judge::field_record& judge::known_field(const std::string& field) {
  return fields_.try_emplace(field, field_record{.first_seen = plan_.now(), .unwanted_since = {}}).first->second;
}

// Also what is over by now: it may come back.
void judge::clock_stepped_back(nanoseconds by) {
  for (const auto& [key, e] : server_.program().keys().all())
    each_owner(key, e, [&](const std::string& field) { known_field(field).stepped_back += by; });
}

void judge::look_for_residue() {
  const auto& keys = server_.program().keys();
  auto before = std::exchange(fields_, {});
  for (const auto& [key, e] : keys.all()) {
    if (!keys.find(key)) continue;
    // Who has taken its TTL away will take the key away.
    const auto left = e.expires ? server_.clock().end_of(*e.expires) - plan_.now() : nanoseconds();
    each_owner(key, e, [&](const std::string& field) {
      fields_.insert(before.extract(field));
      look_at_field(key, field, known_field(field), left);
    });
  }
}

// A command that a stopped server still has in its socket may run after its client has given up to undo it, one TTL
// later: no field stays for longer than the outage was.
void judge::look_at_field(const std::string& key, const std::string& field, field_record& f, nanoseconds left) {
  const auto c = std::find_if(clients_.begin(), clients_.end(),
                              [&](const auto& each) { return field.starts_with(each.who->uuid()); });
  if (c == clients_.end() || (c->who->closing() && !c->closed_in_peace)) return;
  if (plan_.now() <= c->clear_since + reconnection(c->who->settings()))
    f.outage = std::max(f.outage, c->clear_since - c->trouble_began);
  const bool held = std::any_of(holds_.begin(), holds_.end(), [&](const auto& h) {
    return std::string_view(h.of->field().to_text()) == field && h.of->exclusive();
  });
  const bool asked = std::any_of(calls_.begin(), calls_.end(), [&](const auto& call) {
    const auto& names = call.second.waits_for;
    return call.second.by == c->who && std::find(names.begin(), names.end(), key) != names.end() &&
           call.second.since <= f.first_seen;
  });
  f.met_replica |= server_.program().is_replica();
  if (held || asked) return f.unwanted_since.reset();
  if (!f.unwanted_since) f.unwanted_since = plan_.now();
  const auto due = std::max(*f.unwanted_since, undisturbed_from(*c->who)) + journey;
  const bool overdue = c->closed_in_peace || plan_.now() > due;
  if (left > f.outage + f.stepped_back && overdue && !f.met_replica && !f.unfenced)
    accuse(c->who->name(), "has left " + field + " in " + key);
}

void judge::look_for_survivors() {
  look_for_residue();
  for (const auto& [field, f] : fields_)
    if (f.stepped_back == nanoseconds::zero()) accuse("the node", "still keeps " + field);
}

void judge::look_at_the_end() {
  if (!calls_.empty()) accuse("somebody", "was never answered:" + unanswered());
  for (const auto& [key, e] : server_.program().keys().all())
    if (!key.starts_with(token_keys) && server_.program().keys().find(key)) accuse("the node", "keeps " + key);
  if (server_.program().subscriptions() != 0) accuse("somebody", "has left a subscription");
  for (const auto& c : clients_) {
    if (!c.who->locks().idle()) accuse(c.who->name(), "is not idle");
    if (c.who->process().has_timers()) accuse(c.who->name(), "has left a timer");
  }
}

void judge::killed(const sim_client& victim) { accuse(victim.name(), "has lost a live connection to another's fence"); }

void judge::accuse(const std::string& whom, const std::string& what) {
  if (verdict_.empty()) verdict_ = whom + ' ' + what;
}

void judge::decide() const {
  if (!verdict_.empty()) throw violation(verdict_);
}

}  // namespace holdfast::sim
