// SPDX-License-Identifier: BSL-1.0
#include "sim/cluster.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

std::vector<slot_view::identity> identities_of(const std::deque<server>& all) {
  std::vector<slot_view::identity> each;
  for (const auto& s : all) each.push_back({s.at().host, s.at().port, s.name()});
  return each;
}

}  // namespace

cluster::cluster(scheduler& plan, std::deque<server>& all, replication& data, detail::random_source& random, trace& log,
                 times t)
    : plan_(plan), all_(all), data_(data), random_(random), log_(log), times_(t), shard_of_(slots_in_all),
      unheard_(all.size()), missed_since_(shards), failing_over_(shards) {
  const auto who = identities_of(all_);
  for (std::size_t s = 0; s < slots_in_all; ++s) shard_of_[s] = static_cast<std::uint8_t>(s * shards / slots_in_all);
  for (std::size_t shard = 0; shard < shards; ++shard) primary_.push_back(shard);
  for (member m = 0; m < all_.size(); ++m) {
    auto& program = all_[m].program();
    program.join({who, m});
    for (std::size_t s = 0; s < slots_in_all; ++s) view(m).set_owner(static_cast<slot_number>(s), shard_of_[s]);
    for (std::size_t shard = 0; shard < shards; ++shard) view(m).set_replicas(shard, {shard + shards});
    program.on_broadcast = [this, m](std::string_view channel, std::string_view payload) {
      for (member other = 0; other < all_.size(); ++other) {
        if (other == m || !reached(other) || !reached(m)) continue;
        later(times_.slowest_word / 8, [this, other, c = std::string(channel), p = std::string(payload)] {
          all_[other].arrive([this, other, c, p] { all_[other].program().deliver(c, p); });
        });
      }
    };
    if (m >= shards) data_.follow(m, m - shards);
  }
}

cluster::member cluster::owner(std::string_view key) const {
  const auto slot = slot_of(key);
  const auto moving = open_.find(slot);
  if (moving == open_.end()) return primary_[shard_of_[slot]];
  const auto from = primary_[moving->second.from], to = primary_[moving->second.to];
  if (!moving->second.leaves) return from;
  return std::as_const(all_[from].program().tamper()).find(key) ? from : to;
}

bool cluster::serves(member m, std::string_view key) const {
  const auto moving = open_.find(slot_of(key));
  if (moving == open_.end()) return m == owner(key);
  return m == primary_[moving->second.from] || m == primary_[moving->second.to];
}

bool cluster::settled() const {
  for (std::size_t shard = 0; shard < shards; ++shard)
    if (failing_over_[shard] || !reached(primary_[shard])) return false;
  for (member m = 0; m < all_.size(); ++m)
    if (all_[m].running() && data_.isolated(m)) return false;
  return old_.empty() && plan_.now() > heard_by_all_;
}

std::optional<cluster::member> cluster::replica_of(std::size_t shard) const {
  for (const auto m : data_.replicas_of(primary_[shard]))
    if (reached(m)) return m;
  return std::nullopt;
}

bool cluster::busy(std::size_t shard) const {
  return failing_over_[shard] || !reached(primary_[shard]) ||
         std::any_of(open_.begin(), open_.end(),
                     [&](const auto& o) { return o.second.from == shard || o.second.to == shard; });
}

void cluster::look() {
  heard_by_all_ = plan_.now() + 2 * times_.slowest_word;
  for (std::size_t shard = 0; shard < shards; ++shard) check_shard(shard);
  check_service();
  for (member m = 0; m < all_.size(); ++m) hear(m);
  bring_in_line();
}

// Others mark it as failed after the timeout, and then all of them refuse to serve, since slots are missing. A primary
// that nobody reaches finds the same about all others.
void cluster::check_shard(std::size_t shard) {
  auto& missed = missed_since_[shard];
  if (reached(primary_[shard])) return missed.reset();
  if (missed) return;
  const auto since = missed.emplace(plan_.now());
  plan_.at(since + times_.node_timeout, [this, shard, since] {
    if (missed_since_[shard] != since) return;
    check_service();
    const auto act = [this, shard, since](auto again) -> void {
      if (missed_since_[shard] != since) return;
      if (replica_of(shard)) return promote(shard, false);
      plan_.after(1s, [again] { again(again); });
    };
    later(times_.node_timeout / 2 + 100ms, [act] { act(act); });
  });
}

bool cluster::complete() const {
  return std::none_of(missed_since_.begin(), missed_since_.end(),
                      [&](const auto& since) { return since && plan_.now() >= *since + times_.node_timeout; });
}

void cluster::check_service() {
  for (member m = 0; m < all_.size(); ++m) {
    const auto delay = data_.isolated(m) ? times_.node_timeout : nanoseconds();
    plan_.after(delay + random_.up_to(times_.slowest_word),
                [this, m] { view(m).serve(!data_.isolated(m) && complete()); });
  }
}

bool cluster::fail_over(std::size_t shard) {
  if (busy(shard) || !replica_of(shard)) return false;
  failing_over_[shard] = true;
  // The primary stops its clients' writes until its replica has everything.
  plan_.after(1ms + random_.up_to(times_.slowest_word), [this, shard] {
    failing_over_[shard] = false;
    if (!reached(primary_[shard]) || !replica_of(shard)) return look();
    const auto& from = all_[primary_[shard]].program();
    all_[*replica_of(shard)].program().resemble(all_[primary_[shard]].program().keys().all(), from.offset());
    promote(shard, true);
  });
  return true;
}

void cluster::promote(std::size_t shard, bool planned) {
  const auto chosen = *replica_of(shard);
  const auto old = std::exchange(primary_[shard], chosen);
  give_up_moves_of(shard);
  log_.note(plan_.now(), all_[chosen].name(), "promoted");
  on_promotion(old, chosen);
  data_.lead(chosen);
  missed_since_[shard].reset();
  old_.insert(old);
  tell(
      [old, chosen](slot_view& v) {
        v.replace(old, chosen);
        v.set_replicas(old, {});
        v.set_replicas(chosen, {old});
      },
      planned ? std::set<member>{old, chosen} : std::set<member>{chosen});
  check_service();
  look();
}

// Its replica does not know that a slot was on its way: what has arrived at the other end is found by nobody.
void cluster::give_up_moves_of(std::size_t shard) {
  for (auto each = open_.begin(); each != open_.end();) {
    const auto [slot, between] = *each;
    if (between.from != shard && between.to != shard) {
      ++each;
      continue;
    }
    each = open_.erase(each);
    auto& gone = all_[primary_[between.to]].program().tamper();
    const auto keys = gone.all();
    for (const auto& [key, entry] : keys)
      if (slot_of(key) == slot) {
        gone.erase(key);
        on_key_lost(key);
      }
    all_[primary_[between.to]].program().tampered();
    for (auto& m : all_) m.program().slots().close(slot);
  }
}

void cluster::tell(const std::function<void(slot_view&)>& what, std::set<member> who_knows) {
  for (member m = 0; m < all_.size(); ++m) {
    if (who_knows.contains(m) && unheard_[m].empty()) {
      what(view(m));
      all_[m].program().end_foreign_subscriptions();
      continue;
    }
    unheard_[m].push_back(what);
    hear(m);
  }
}

// In order, each after its own time; one that is not reached hears of it later.
void cluster::hear(member m) {
  if (unheard_[m].empty()) return;
  later(times_.slowest_word, [this, m] {
    if (!reached(m)) return;
    for (const auto& what : std::exchange(unheard_[m], {})) what(view(m));
    all_[m].program().end_foreign_subscriptions();
    bring_in_line();
  });
}

// A primary that hears of its successor follows it. It ends no connection: it answers MOVED.
void cluster::bring_in_line() {
  for (const auto m : std::set(old_)) {
    if (!reached(m) || !unheard_[m].empty()) continue;
    old_.erase(m);
    const auto successor = primary_[m % shards];
    if (successor == m) continue;
    log_.note(plan_.now(), all_[m].name(), "reconfigured", "to follow " + all_[successor].name());
    data_.follow(m, successor);
  }
}

bool cluster::move(slot_number slot, std::size_t to_shard) {
  const auto from_shard = static_cast<std::size_t>(shard_of_[slot]);
  if (from_shard == to_shard || open_.contains(slot)) return false;
  for (const auto shard : {from_shard, to_shard})
    if (failing_over_[shard] || !reached(primary_[shard]) || !unheard_[primary_[shard]].empty()) return false;
  open_[slot] = {from_shard, to_shard};
  log_.note(plan_.now(), all_[primary_[to_shard]].name(), "imports slot", std::to_string(slot));
  view(primary_[to_shard]).import(slot, primary_[from_shard]);
  later(times_.slowest_step, [this, slot] {
    const auto found = open_.find(slot);
    if (found == open_.end()) return;
    found->second.leaves = true;
    view(primary_[found->second.from]).migrate(slot, primary_[found->second.to]);
    later(times_.slowest_step, [this, slot] { migrate_next_key(slot); });
  });
  return true;
}

void cluster::migrate_next_key(slot_number slot) {
  const auto found = open_.find(slot);
  if (found == open_.end()) return;
  const auto from = primary_[found->second.from], to = primary_[found->second.to];
  const auto again = [this, slot] { later(times_.slowest_step, [this, slot] { migrate_next_key(slot); }); };
  if (!all_[from].running() || !all_[to].running() || data_.isolated(from) || data_.isolated(to)) return again();
  auto &here = all_[from].program(), &there = all_[to].program();
  const auto& keys = here.keys();
  const auto next = std::find_if(keys.all().begin(), keys.all().end(),
                                 [&](const auto& e) { return slot_of(e.first) == slot && keys.find(e.first); });
  if (next == keys.all().end()) return finish_move(slot);
  // It is sent with the time that it has left, by the clock of its own server, and takes a while.
  auto entry = next->second;
  const auto key = next->first;
  if (entry.expires)
    entry.expires = there.keys().now() + (*entry.expires - keys.now()) + static_cast<wall_ms>(random_.next() % 2);
  there.tamper().restore(key, std::move(entry));
  there.tampered();
  here.tamper().erase(key);
  here.tampered();
  log_.note(plan_.now(), all_[from].name(), "migrates", key);
  again();
}

void cluster::finish_move(slot_number slot) {
  const auto between = open_.at(slot);
  const auto to = primary_[between.to];
  shard_of_[slot] = static_cast<std::uint8_t>(between.to);
  open_.erase(slot);
  view(to).close(slot);
  view(to).set_owner(slot, to);
  log_.note(plan_.now(), all_[to].name(), "has slot", std::to_string(slot));
  on_moved(slot);
  tell(
      [slot, shard = between.to, this](slot_view& v) {
        v.close(slot);
        v.set_owner(slot, primary_[shard]);
      },
      {to});
}

}  // namespace holdfast::sim
