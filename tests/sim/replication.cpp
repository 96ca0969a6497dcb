// SPDX-License-Identifier: BSL-1.0
#include "sim/replication.hpp"

#include <memory>
#include <utility>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

/// How many writes a primary keeps for a replica.
constexpr std::size_t backlog = 64;
/// Until a replica that cannot have its primary's data tries again.
constexpr nanoseconds resync_retry = 100ms;

}  // namespace

replication::replication(scheduler& plan, std::deque<server>& all, detail::random_source& random)
    : plan_(plan), all_(all), random_(random), links_(all.size()) {
  for (member m = 0; m < all_.size(); ++m) {
    links_[m].sends = {"replica " + all_[m].name(), nullptr, &all_[m]};
    auto& program = all_[m].program();
    program.on_write = [this, m] { send(m); };
    program.followers = [this, m] { return followers_of(m); };
  }
}

void replication::follow(member replica, member primary) {
  links_[replica].primary = primary;
  all_[replica].program().follow(all_[primary].as_peer());
  resynchronise(replica);
}

void replication::lead(member m) {
  auto& l = links_[m];
  l.primary.reset();
  ++l.epoch;
  all_[m].program().lead();
}

std::vector<replication::member> replication::replicas_of(member primary) const {
  std::vector<member> all;
  for (member m = 0; m < links_.size(); ++m)
    if (links_[m].primary == primary) all.push_back(m);
  return all;
}

void replication::isolate(member m, bool on) {
  links_[m].isolated = on;
  if (!on) return;
  for (member n = 0; n < links_.size(); ++n)
    if (links_[n].primary && (n == m || *links_[n].primary == m)) resynchronise(n);
}

void replication::lose_what_is_on_its_way_from(member primary) {
  for (const auto m : replicas_of(primary)) resynchronise(m);
}

void replication::resume(member m) {
  if (links_[m].primary) resynchronise(m);
}

bool replication::connected(member a, member b) const {
  return !links_[a].isolated && !links_[b].isolated && all_[a].running() && all_[b].running();
}

void replication::send(member from) {
  for (const auto to : replicas_of(from)) send(from, to);
}

void replication::send(member from, member to) {
  auto& l = links_[to];
  if (!l.in_step) return;
  if (all_[to].down() || ++l.on_its_way > backlog) return resynchronise(to);
  auto& program = all_[from].program();
  const auto data = std::make_shared<const keyspace::entries>(program.keys().all());
  l.last_arrives = std::max(l.last_arrives, plan_.now() + random_.up_to(lag));
  plan_.send(l.sends, l.last_arrives, [this, to, data, offset = program.offset(), epoch = l.epoch] {
    all_[to].arrive([this, to, data, offset, epoch] {
      auto& arrived = links_[to];
      if (arrived.epoch != epoch) return;
      --arrived.on_its_way;
      arrived.acknowledged = offset;
      all_[to].program().resemble(*data, offset);
      send(to);
    });
  });
}

void replication::resynchronise(member m) {
  auto& l = links_[m];
  l.in_step = false;
  l.on_its_way = 0;
  const auto epoch = ++l.epoch;
  plan_.after(lag + random_.up_to(lag + 1ms), [this, m, epoch] { try_to_resynchronise(m, epoch); });
}

void replication::try_to_resynchronise(member m, std::uint64_t epoch) {
  auto& l = links_[m];
  if (l.epoch != epoch || !l.primary) return;
  auto& primary = all_[*l.primary].program();
  if (!connected(m, *l.primary)) return plan_.after(resync_retry, [this, m, epoch] { try_to_resynchronise(m, epoch); });
  l.in_step = true;
  l.acknowledged = primary.offset();
  all_[m].program().resemble(primary.keys().all(), primary.offset());
  send(m);
}

std::vector<node::peer> replication::followers_of(member primary) const {
  std::vector<node::peer> all;
  for (const auto m : replicas_of(primary)) {
    if (!links_[m].in_step) continue;
    all.push_back(all_[m].as_peer());
    all.back().offset = links_[m].acknowledged;
  }
  return all;
}

}  // namespace holdfast::sim
