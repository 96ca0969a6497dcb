// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/judge.hpp"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view token_keys = "redisson_lock_token:", markers = "holdfast:redlock";

/// How often this owner holds the lock that is stored so.
std::size_t count_of(const keyspace::entry& e, std::string_view owner) {
  if (const auto* text = e.text()) return *text == owner ? 1 : 0;
  const auto* count = e.hash()->find(owner);
  return count ? std::stoull(*count) : 0;
}

/// What is stored of this owner.
std::optional<std::string> stored(const keyspace::entry* e, std::string_view owner) {
  if (!e) return std::nullopt;
  if (const auto* text = e->text()) return *text == owner ? std::optional(*text) : std::nullopt;
  const auto* count = e->hash()->find(owner);
  return count ? std::optional(*count) : std::nullopt;
}

/// Whoever holds the lock that is stored so.
template <class Use>
void each_owner(const std::string& key, const keyspace::entry& e, Use use) {
  if (key.starts_with(token_keys) || key.starts_with(markers)) return;
  if (const auto* text = e.text()) return use(*text);
  for (const auto& [owner, count] : e.hash()->fields()) use(owner);
}

template <class Map>
auto& at_or_new(Map& in, std::string_view key) {
  const auto found = in.find(key);
  return found != in.end() ? found->second : in[std::string(key)];
}

/// The longest pause before a retry: the cap of the library's retry_backoff, of renewal_retry_pause(), and
/// attempt_pacing::hopeless.
constexpr nanoseconds retry = 1s;
/// Until a wake-up is followed, after many that came in vain.
constexpr nanoseconds wake_up = detail::wake_budget::interval;
/// A message, a new connection with its handshake, a command that the node has forgotten and its repetition: ten ways
/// of 3 ms at most each.
constexpr nanoseconds journey = 30ms;
/// Before a command that could not run while a slot moved is sent again.
constexpr nanoseconds longest_redirect_pause = 100ms;
/// How often the judge looks for what is overdue only after many milliseconds. It misses no state that lasts longer.
constexpr nanoseconds glance = 1ms;
/// Where several callers divide the nodes among themselves, they give back and try again after random pauses of up to
/// a second, until one of them has a majority.
constexpr nanoseconds contest = 5s;

/// Until a client that is awake is connected to the primary that its sentinels name: they are asked each second.
constexpr nanoseconds followed = 2s;

/// An attempt to connect that fails in its own time, and the longest pause before the next.
nanoseconds reconnection(const config& c) { return c.connect_timeout + c.reconnect_cap; }

/// Until what was sent in trouble has been answered or sent again, once the trouble is over.
nanoseconds undisturbed(const config& c) { return c.command_timeout + retry + reconnection(c); }

/// A waiter sleeps for the TTL that the node has told, and no longer than this.
nanoseconds longest_sleep(const config& c) { return c.poll_cap; }

/// By its own clock, which may be the slower one.
nanoseconds late_by_clock(const config& c) {
  return std::chrono::duration_cast<nanoseconds>(longest_sleep(c) * c.drift);
}

}  // namespace

judge::judge(scheduler& plan, deployment& servers, coverage& met)
    : plan_(plan), servers_(servers), nodes_(servers.units()), met_(met) {
  servers_.on_promotion = [this](std::size_t from, std::size_t to) {
    promoted(servers_.machines()[from], servers_.machines()[to]);
  };
  servers_.on_key_lost = [this](const std::string& key) { excuse(key); };
}

void judge::add(sim_client& c) {
  clients_.push_back({&c, std::vector<link_record>(nodes_.size(), {plan_.now(), {}}), {}});
}

judge::client_record& judge::watched(const sim_client& c) {
  return *std::find_if(clients_.begin(), clients_.end(), [&](const auto& each) { return each.who == &c; });
}

std::uint64_t judge::begin(const sim_client& by, std::string what) {
  calls_.emplace(++last_call_, call_record{&by, std::move(what), {}, plan_.now()});
  return last_call_;
}

std::uint64_t judge::begin_try(const sim_client& by, std::string name, std::string what) {
  const auto id = begin(by, std::move(what));
  calls_.at(id).tries = std::move(name);
  return id;
}

std::uint64_t judge::begin_wait(const sim_client& by, std::vector<std::string> names, std::string what) {
  const auto id = begin(by, std::move(what));
  calls_.at(id).waits_for = std::move(names);
  return id;
}

std::uint64_t judge::begin_wait_for_all(const sim_client& by, std::vector<std::string> names, std::string what) {
  const auto id = begin_wait(by, std::move(names), std::move(what));
  calls_.at(id).wants_all = true;
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
  c.closed_in_peace = c.closing_in_peace && std::all_of(c.links.begin(), c.links.end(), [&](const auto& to) {
                        return to.clear_since < *c.closing_in_peace;
                      });
  if (c.closed_in_peace) met_.hit("close: nothing in the way");
}

void judge::granted_any(sim_client& to, const record_ptr& lease, bool fenced) {
  if (lease->of->count() != 1) accuse(to.name(), "has re-entered " + lease->of->keys()->name + ", one of several");
  granted(to, lease, fenced);
}

void judge::granted_all(sim_client& to, const std::vector<record_ptr>& leases, std::size_t asked, bool fenced) {
  if (leases.size() != asked) accuse(to.name(), "was granted a part of what it asked for together");
  std::set<std::string> fields;
  for (const auto& l : leases) {
    fields.emplace(std::string_view(l->of->field().to_text()));
    granted(to, l, fenced && l->of->token());
    if (fenced && !l->of->token()) accuse(to.name(), "was granted " + l->of->keys()->name + " without a token");
  }
  if (fields.size() != asked) accuse(to.name(), "has one field of several locks");
}

void judge::several_answered(const std::vector<std::pair<std::string, std::string>>& name_and_field, bool acquired) {
  for (const auto& [name, field] : name_and_field) {
    const bool there = backed_until(name, field).has_value();
    if (acquired && !there) accuse("the node", "has granted several, and not " + name);
    if (acquired) acquired_with_others_.insert(field);
    if (!acquired && there && !acquired_with_others_.contains(field))
      accuse("the node", "has granted " + name + ", and not the others");
  }
}

void judge::granted(sim_client& to, const record_ptr& lease, bool fenced) {
  const auto now = plan_.now();
  const auto& h = lease->of;
  if (!std::string_view(h->field().to_text()).starts_with(to.uuid()))
    accuse("the simulator", "does not know the uuid of " + to.name());
  if (std::none_of(holds_.begin(), holds_.end(), [&](const auto& each) { return each.of == h; })) {
    holds_.push_back({&to,
                      h,
                      std::string(std::string_view(h->field().to_text())),
                      h->valid_until() - lease->asked.ttl,
                      now,
                      now,
                      {},
                      1,
                      {},
                      {},
                      false,
                      false});
    if (h->valid_until() - now < detail::min_validity(lease->asked.ttl))
      accuse(to.name(), "was granted " + h->keys()->name + " too late to use it");
    // Its owner may have re-entered what another call of it has got together with others, and is not answered yet.
    const bool others = acquired_with_others_.contains(holds_.back().field);
    if (h->token() && !fenced && !others)
      accuse(to.name(), "has a token of " + h->keys()->name + " that it did not ask for");
    if (h->token()) {
      const auto given = tokens_of_.find(std::string(std::string_view(h->field().to_text())));
      const auto all = given == tokens_of_.end() ? tokens{0, 0} : given->second;
      const bool its_own = h->passes < all.count && *h->token() == all.first + h->passes;
      // The answer to a command that was sent again.
      const bool repeated = h->passes == 0 && *h->token() == all.newest();
      if (!its_own && !repeated) accuse(to.name(), "has a token that the node did not give it");
      if (h->passes > 0) met_.hit("lock: a token of a pass");
    }
  }
  if (fenced && !h->token()) accuse(to.name(), "was granted " + h->keys()->name + " without a token");
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
    if (call.waits_for.size() > 1 && !call.wants_all && field.starts_with(call.by->uuid()))
      std::erase(call.waits_for, name);
}

void judge::tokens_given(const std::string& name, const std::string& field, tokens all) {
  auto& last = tokens_[name];
  if (field == last.field && all.first >= last.all.first && all.newest() <= last.all.newest()) {
    last.lost = false;  // a command that was sent again
    return;
  }
  const bool clock_is_behind = holder(0, name).clock().now_us() <= static_cast<std::int64_t>(last.all.newest());
  if (all.first <= last.all.newest() && !(last.lost && clock_is_behind))
    accuse("the node", "gives the token " + std::to_string(all.first) + " of " + name + " after " +
                           std::to_string(last.all.newest()));
  last = {all, field, false};
  tokens_of_[field] = all;
}

void judge::tokens_given_by_another(const std::string& field, tokens all) { tokens_of_[field] = all; }

void judge::token_lost(const std::string& name) {
  if (const auto found = tokens_.find(name); found != tokens_.end()) found->second.lost = true;
}

void judge::data_lost(std::size_t machine) {
  if (!servers_.holds_any(machine)) return;
  vote_lost(machine);
  for (auto& [name, last] : tokens_) last.lost = true;
  (nodes_.size() == 1 ? all_excused_ : forgotten_at_) = plan_.now();
}

void judge::lost_to_caller(const sim_client& by, const detail::lock_keys& name, bool has_lease) {
  if (!has_lease) accuse(by.name(), "was told of the loss of " + name.name + ", of which it had no lease");
}

void judge::released(const record_ptr& lease) {
  for (auto& each : leases_)
    if (each.lease == lease && !std::exchange(each.released, true)) each.released_at = plan_.now();
}

void judge::begin_renewal(const record_ptr& lease, detail::milliseconds ttl) {
  for (auto& h : holds_)
    if (h.of == lease->of) h.longest_ttl = std::max(h.longest_ttl, ttl);
}

void judge::unlocked(const sim_client& by, const detail::lock_keys& name, error_code answer) {
  if (answer == errc::not_held) accuse(by.name(), "was told that it had not held " + name.name + ", which it had");
}

void judge::peer_holds(const std::string& name, const std::string& field, time_point until) {
  peer_released(field);
  peers_.push_back({name, field, plan_.now(), until, plan_.now()});
}

void judge::peer_released(const std::string& field) {
  std::erase_if(peers_, [&](const auto& each) { return each.field == field; });
}

void judge::released_in_silence(const std::string& name) { taken_in_silence_[name] = plan_.now(); }

void judge::excuse(const std::string& name, bool told) {
  (name.empty() ? all_excused_ : excused_[name]) = plan_.now();
  if (!told) taken_in_silence_[name] = plan_.now();
}

time_point judge::broken_at(const std::string& name) const {
  const auto found = excused_.find(name);
  return found == excused_.end() ? all_excused_ : std::max(found->second, all_excused_);
}

void judge::trouble(const sim_client* whom, std::size_t machine, time_point end) {
  for (auto& c : clients_)
    if (!whom || c.who == whom) extend_trouble(c, c.links[servers_.unit_of(machine)], plan_.now(), end);
}

void judge::trouble(const sim_client* whom, time_point end) {
  for (std::size_t m = 0; m < servers_.machines().size(); ++m) trouble(whom, m, end);
}

void judge::promoted(server& from, server& to) {
  const auto &before = from.program().keys(), &after = to.program().keys();
  const auto end_of = [](server& of, const keyspace::entry& e) {
    return e.expires ? of.clock().end_of(*e.expires) : time_point::max();
  };
  for (const auto& [key, e] : before.all()) {
    if (!before.find(key)) continue;
    const auto* kept = after.find(key);
    each_owner(key, e, [&](const std::string& field) {
      if (stored(kept, field) != stored(&e, field) || end_of(to, *kept) < end_of(from, e)) {
        excuse(key);
        known_field(0, field).replaced = true;  // perhaps a count alone
        met_.hit("failover: forgets what was acknowledged");
      } else {
        met_.hit("failover: keeps a hold");
      }
    });
  }
  for (const auto& [key, e] : after.all())
    each_owner(key, e, [&](const std::string& field) {
      const auto* had = before.find(key);
      const bool longer = had && end_of(to, e) > end_of(from, *had);
      if (stored(had, field) != stored(&e, field) || longer) known_field(0, field).met_replica = true;
    });
  for (auto& [name, last] : tokens_) {
    const auto key = std::string(token_keys) + (name.find('{') == name.npos ? '{' + name + '}' : name);
    const auto *had = before.find(key), *has = after.find(key);
    if (had && (!has || !has->text() || !had->text() || *has->text() != *had->text())) last.lost = true;
  }
}

void judge::answered_by_another(std::size_t machine, const std::string& key, const std::string& field, bool has_it) {
  const auto* c = client_of(field);
  if (!c) return;
  auto& f = known_field(0, field);
  f.met_replica = f.replaced = true;  // how often it is held is told here alone
  if (has_it) excuse(key);
  met_.hit("failover: an old primary answers");
  if (plan_.now() > undisturbed_from(*c->who))
    accuse(c->who->name(), "still believes " + servers_.machines()[machine].name() + ", which has been replaced");
}

time_point judge::undisturbed_from(const sim_client& c, std::size_t node) {
  return watched(c).links[node].clear_since + undisturbed(c.settings());
}

time_point judge::undisturbed_from(const sim_client& c) {
  time_point from{};
  for (std::size_t n = 0; n < nodes_.size(); ++n) from = std::max(from, undisturbed_from(c, n));
  return from;
}

void judge::extend_trouble(const client_record& c, link_record& to, time_point now, time_point end) {
  if (to.clear_since + reconnection(c.who->settings()) < now) to.trouble_began = now;
  to.clear_since = std::max(to.clear_since, end);
}

std::optional<time_point> judge::majority_until(std::vector<time_point> each) const {
  const auto majority = nodes_.size() / 2 + 1;
  if (each.size() < majority) return std::nullopt;
  const auto nth = each.begin() + static_cast<std::ptrdiff_t>(majority - 1);
  std::nth_element(each.begin(), nth, each.end(), std::greater<>());
  return *nth;
}

std::optional<time_point> judge::backed_until(std::string_view name, std::string_view field) const {
  std::vector<time_point> each;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const auto* e = entry_of(n, name);
    if (e && count_of(*e, field) > 0)
      each.push_back(e->expires ? holder(n, name).clock().end_of(*e->expires) : time_point::max());
  }
  return majority_until(std::move(each));
}

/// `use(key, field, until)`: what a majority of the nodes has.
template <class Use>
void judge::each_backing(Use use) {
  struct kept {
    std::string_view key, field;
    time_point until;
  };
  std::vector<kept> all;
  for (std::size_t n = 0; n < nodes_.size(); ++n)
    servers_.each_key(n, [&](server& at, const std::string& key, const keyspace::entry& e) {
      const auto until = e.expires ? at.clock().end_of(*e.expires) : time_point::max();
      each_owner(key, e, [&](const std::string& field) { all.push_back({key, field, until}); });
    });
  std::sort(all.begin(), all.end(), [](const kept& a, const kept& b) {
    return std::tie(a.key, a.field, b.until) < std::tie(b.key, b.field, a.until);
  });
  const auto majority = nodes_.size() / 2 + 1;
  for (std::size_t first = 0, i = 0; i < all.size(); ++i) {
    if (all[i].key != all[first].key || all[i].field != all[first].field) first = i;
    if (i - first + 1 == majority) use(all[i].key, all[i].field, all[i].until);
  }
}

void judge::note_backing() {
  const auto now = plan_.now();
  for (auto& [key, fields] : backing_)
    std::erase_if(fields, [&](const auto& each) { return each.second.front().until < now; });
  each_backing([&](std::string_view key, std::string_view field, time_point until) {
    auto& seen = at_or_new(at_or_new(backing_, key), field);
    std::erase_if(seen, [&](const auto& each) { return each.until <= until || each.until < now; });
    seen.push_back({until, now});
  });
}

std::optional<time_point> judge::last_backed(const std::string& name, std::string_view field, time_point until) const {
  const auto fields = backing_.find(name);
  if (fields == backing_.end()) return std::nullopt;
  const auto found = fields->second.find(field);
  if (found == fields->second.end()) return std::nullopt;
  const auto& seen = found->second;  // the longer, the earlier
  const auto last = std::find_if(seen.rbegin(), seen.rend(), [&](const auto& each) { return each.until >= until; });
  return last == seen.rend() ? std::nullopt : std::optional(last->seen);
}

void judge::look() {
  note_backing();
  const bool settled = servers_.settled();
  for (auto& c : clients_)
    for (std::size_t m = 0; m < servers_.machines().size(); ++m)
      if (!settled || c.who->ways()[m].troubled() || c.who->process().paused())
        extend_trouble(c, c.links[servers_.unit_of(m)], plan_.now(), plan_.now());
  claims_.clear();
  for (auto& h : holds_) look_at(h);
  for (auto& l : leases_) look_at(l);
  for (auto& p : peers_) look_at(p);
  std::erase_if(holds_, [&](const auto& h) { return h.over && h.of->count() == 0 && !held_up(h); });
  leases_.remove_if([](const auto& l) { return l.over; });
  std::erase_if(peers_, [&](const auto& p) { return p.until <= plan_.now(); });
  for (const auto& [name, claimants] : claims_) {
    const auto backed = std::count_if(claimants.begin(), claimants.end(), [](const auto& c) { return c.backed; });
    if (claimants.size() < 2) continue;
    const auto first = std::min_element(claimants.begin(), claimants.end(),
                                        [](const auto& a, const auto& b) { return a.asked < b.asked; });
    if (backed > 1 || broken_at(name) < first->asked)
      accuse(claimants.front().who + " and " + claimants.back().who, "both hold " + name);
    met_.hit("overlap explained by a fault outside the guarantee");
  }
  if (plan_.now() < next_glance_ && plan_.next().value_or(time_point::max()) < next_glance_) return;
  next_glance_ = plan_.now() + glance;
  look_for_forgotten_waiters();
  look_who_is_awake();
  look_for_residue();
}

void judge::claim(const std::string& name, const std::string& who, bool backed, time_point asked) {
  claims_[name].push_back({who, backed, asked});
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
  const auto until = backed_until(hold.keys()->lock, h.field);
  const bool covered = until && *until >= hold.valid_until();
  h.longest_ttl = std::max(h.longest_ttl, hold.ttl());
  claim(hold.keys()->name, h.by->name(), covered, h.asked);
  if (covered) {
    h.uncovered_since.reset();
    return look_at_count(h);
  }
  h.ever_uncovered = true;
  // What was confirmed before the fault may be heard of after it. Of several nodes each confirms when it is asked: they
  // need never have backed the claim together.
  const auto backed = last_backed(hold.keys()->lock, h.field, hold.valid_until());
  // And one that has been replaced confirms what nobody else knows.
  const bool by_one = nodes_.size() == 1 && !servers_.fails_over();
  const auto first_confirmed = by_one ? time_point::max() : hold.valid_until() - h.longest_ttl;
  if (excused_at(hold.keys()->name) < backed.value_or(first_confirmed))
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

// Of several nodes some hear of a change later than its caller.
void judge::look_at_count(hold_record& h) {
  if (nodes_.size() > 1) return;
  const auto& hold = *h.of;
  const auto leases = hold.count();
  h.most_leases = std::max(h.most_leases, leases + (hold.changing() ? 1 : 0));
  // Without fencing a late command of a dead connection may still change it.
  const auto& field = known_field(0, h.field);
  const bool fenced = !field.unfenced && !field.replaced;
  if (hold.changing() || hold.on->counted.under_way || h.ever_uncovered || leases == 0 || !fenced) return;
  const auto count = count_of(*entry_of(0, hold.keys()->lock), h.field);
  const bool told = hold.on->counted.leases == leases;
  const bool undisturbed = watched(*h.by).links[0].clear_since < h.granted;
  // What a hold that was passed on was counted before, it may be counted until that can be told.
  const bool possible = count > 0 && (count <= h.most_leases || hold.passes > 0);
  if (told ? count != leases : undisturbed || !possible)
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
  claim(p.name, "a peer", covered, p.asked);
  if (covered)
    p.covered_at = plan_.now();
  else if (excused_at(p.name) < p.covered_at)
    accuse("a peer", "was robbed of " + p.name);
}

judge::client_record* judge::client_of(std::string_view field) {
  const auto c = std::find_if(clients_.begin(), clients_.end(),
                              [&](const auto& each) { return field.starts_with(each.who->uuid()); });
  return c == clients_.end() ? nullptr : &*c;
}

bool judge::is_free(std::size_t node, const std::string& name) {
  if (claims_.contains(name)) return false;
  const auto* e = entry_of(node, name);
  if (!e || nodes_.size() == 1) return !e;
  bool held = false;
  each_owner(name, *e, [&](const std::string& field) {
    const auto* c = client_of(field);
    // A field that nobody could give back, or that a stopped node has taken when nobody gave it back any more, stays
    // for its TTL; whether it may, look_for_residue() says.
    const auto& f = known_field(node, field);
    const auto now = plan_.now();
    const bool asks = c && !f.met_replica && !f.unfenced && !f.replaced && now > undisturbed_from(*c->who, node) &&
                      now < f.first_seen + undisturbed(c->who->settings()) &&
                      std::any_of(calls_.begin(), calls_.end(), [&](const auto& call) {
                        const auto& names = call.second.waits_for;
                        return call.second.by == c->who && std::find(names.begin(), names.end(), name) != names.end();
                      });
    held |= !asks;
  });
  return !held;
}

bool judge::is_free(const std::string& name) {
  std::size_t free = 0;
  for (std::size_t n = 0; n < nodes_.size(); ++n) free += is_free(n, name);
  return free > nodes_.size() / 2;
}

// Nobody was told of what was taken in silence: it is found by the poll.
time_point judge::silence_about(const std::string& name, const sim_client& to) {
  if (servers_.moves(name)) taken_in_silence_[name] = plan_.now();
  return std::max({taken_in_silence_[name], all_excused_, forgotten_at_, watched(to).message_lost});
}

// Who wants several has his turn for the earlier ones while he waits for a later one, of which another may have the
// turn. One that became free in silence is waited for until the poll.
void judge::note_what_is_kept() {
  // A script that needs a second key waits while the slot moves, and whoever wants several asks one slot after the
  // other.
  for (const auto& [id, call] : calls_)
    if (call.waits_for.size() > 1 &&
        std::any_of(call.waits_for.begin(), call.waits_for.end(), [&](const auto& n) { return servers_.moves(n); }))
      for (const auto& n : call.waits_for) kept_at_[{call.by, n}] = plan_.now() + longest_redirect_pause;
  decltype(kept_) kept;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [id, call] : calls_) {
      if (!call.wants_all) continue;
      const auto& settings = call.by->settings();
      const auto waits = [&](const std::string& n) {
        const auto silence = silence_about(n, *call.by);
        const bool found = plan_.now() > silence + longest_sleep(settings) + late_by_clock(settings);
        return !is_free(n) || !found || kept.contains({call.by, n});
      };
      if (std::none_of(call.waits_for.begin(), call.waits_for.end(), waits)) continue;
      for (const auto& n : call.waits_for) more |= kept.emplace(call.by, n).second;
    }
  }
  for (const auto* all : {&kept_, &kept})  // what was kept until now, too
    for (const auto& each : *all) kept_at_[each] = plan_.now();
  kept_ = std::move(kept);
}

void judge::look_for_forgotten_waiters() {
  const auto now = plan_.now();
  note_what_is_kept();
  for (const auto& [id, call] : calls_)
    for (const auto& name : call.waits_for)
      for (std::size_t n = 0; n < nodes_.size(); ++n) {
        auto& since = nodes_[n].free_since[name];
        if (!is_free(n, name) || servers_.moves(name))
          since.reset();
        else if (!since)
          since = now;
      }
  const auto patience = wake_up + journey + (nodes_.size() == 1 ? nanoseconds() : contest);
  for (const auto& [id, call] : calls_)
    for (const auto& name : call.waits_for) {
      if (call.by->closing()) continue;
      const auto& settings = call.by->settings();
      const auto from = std::max({could_be_granted_since(call, name),
                                  silence_about(name, *call.by) + longest_sleep(settings), kept_at_[{call.by, name}]});
      if (now - patience > from + late_by_clock(settings))
        accuse(call.by->name(), "waits for " + name + ", which is free: " + call.what);
    }
}

// A node that has lost its vote has it again when somebody has asked, has waited for the longest TTL, and asks again.
time_point judge::could_be_granted_since(const call_record& call, const std::string& name) {
  std::vector<time_point> each;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const auto& node = nodes_[n];
    const auto free = node.free_since.find(name);
    if (free == node.free_since.end() || !free->second) continue;
    const auto from = std::max({*free->second, undisturbed_from(*call.by, n), call.since});
    const auto vote = nanoseconds(call.by->settings().longest_ttl) * 2 + 3 * retry;
    const bool waits = nodes_.size() > 1 && node.vote_lost;
    each.push_back(waits ? std::max(from, *node.vote_lost) + vote : from);
  }
  const auto majority = nodes_.size() / 2 + 1;
  if (each.size() < majority) return time_point::max() - std::chrono::hours(1);
  const auto nth = each.begin() + static_cast<std::ptrdiff_t>(majority - 1);
  std::nth_element(each.begin(), nth, each.end());
  return *nth;
}

std::string judge::unanswered() const {
  std::string all;
  for (const auto& [id, call] : calls_) all += "\n  " + call.by->name() + ": " + call.what;
  return all;
}

void judge::ran_unfenced(std::size_t machine, const arguments& command) {
  for (const auto& word : command)
    if (client_of(word)) known_field(servers_.unit_of(machine), word).unfenced = true;
}

judge::field_record& judge::known_field(std::size_t node, const std::string& field) {
  return fields_.try_emplace({node, field}, field_record{.first_seen = plan_.now(), .unwanted_since = {}})
      .first->second;
}

// Also what is over by now: it may come back.
void judge::clock_stepped_back(std::size_t machine, nanoseconds by) {
  if (servers_.is_sentinel(machine)) return;
  for (const auto& [key, e] : servers_.machines()[machine].program().keys().all())
    each_owner(key, e,
               [&](const std::string& field) { known_field(servers_.unit_of(machine), field).stepped_back += by; });
}

void judge::look_who_is_awake() {
  for (auto& c : clients_) {
    const bool waits = std::any_of(calls_.begin(), calls_.end(), [&](const auto& e) { return e.second.by == c.who; });
    const bool holds =
        std::any_of(holds_.begin(), holds_.end(), [&](const auto& h) { return h.by == c.who && h.of->exclusive(); });
    if (!waits && !holds)
      c.awake_since.reset();
    else if (!c.awake_since)
      c.awake_since = plan_.now();
  }
}

void judge::look_for_residue() {
  auto before = std::exchange(fields_, {});
  for (std::size_t n = 0; n < nodes_.size(); ++n)
    servers_.each_key(n, [&](server& at, const std::string& key, const keyspace::entry& e) {
      // Who has taken its TTL away will take the key away.
      const auto left = e.expires ? at.clock().end_of(*e.expires) - plan_.now() : nanoseconds();
      each_owner(key, e, [&](const std::string& field) {
        fields_.insert(before.extract({n, field}));
        look_at_field(n, key, field, known_field(n, field), left);
      });
    });
}

// A command that a stopped server still has in its socket may run after its client has given up to undo it, one TTL
// later: no field stays for longer than the outage was.
void judge::look_at_field(std::size_t node, const std::string& key, const std::string& field, field_record& f,
                          nanoseconds left) {
  const auto* c = client_of(field);
  if (!c || (c->who->closing() && !c->closed_in_peace)) return;
  const auto& to = c->links[node];
  if (plan_.now() <= to.clear_since + reconnection(c->who->settings()))
    f.outage = std::max(f.outage, to.clear_since - to.trouble_began);
  const bool held = std::any_of(holds_.begin(), holds_.end(),
                                [&](const auto& h) { return h.field == field && (h.of->exclusive() || held_up(h)); });
  const bool asked = std::any_of(calls_.begin(), calls_.end(), [&](const auto& call) {
    const auto& names = call.second.waits_for;
    const bool wants = call.second.tries == key || std::find(names.begin(), names.end(), key) != names.end();
    return call.second.by == c->who && wants && call.second.since <= f.first_seen;
  });
  f.met_replica |= holder(node, key).program().is_replica();
  if (held || asked) return f.unwanted_since.reset();
  if (!f.unwanted_since) f.unwanted_since = plan_.now();
  const auto due = std::max(*f.unwanted_since, undisturbed_from(*c->who, node)) + journey;
  const bool overdue = c->closed_in_peace || plan_.now() > due;
  // A release that a replaced server has answered is sent again by its client, once that hears of the next one.
  const bool repeated = servers_.what() == detail::deployment::sentinel && !c->who->closing() && c->awake_since &&
                        plan_.now() > std::max(due, *c->awake_since) + followed;
  const bool explained = f.unfenced || ((f.met_replica || f.replaced) && !repeated);
  if (left > f.outage + f.stepped_back && overdue && !explained)
    accuse(c->who->name(), "has left " + field + " in " + key);
}

void judge::look_for_survivors() {
  look_for_residue();
  for (const auto& [where, f] : fields_)
    if (f.stepped_back == nanoseconds::zero()) accuse("the node", "still keeps " + where.second);
}

void judge::look_at_the_end() {
  if (!calls_.empty()) accuse("somebody", "was never answered:" + unanswered());
  for (std::size_t m = 0; m < servers_.machines().size(); ++m) {
    if (servers_.is_sentinel(m)) continue;  // clients listen on
    auto& each = servers_.machines()[m];
    const auto& keys = each.program().keys();
    for (const auto& [key, e] : keys.all())
      if (!key.starts_with(token_keys) && key != markers && keys.find(key)) accuse("the node", "keeps " + key);
    if (each.program().subscriptions() != 0) accuse("somebody", "has left a subscription");
  }
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
