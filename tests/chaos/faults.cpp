// SPDX-License-Identifier: BSL-1.0
#include "chaos/faults.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using kind = fault_kind;

// From short ones that a lease survives to some that no lease does. What acts at once lasts no time.
constexpr fault_terms all_terms[] = {
    {kind::cut, "cut", target::link, 0ms, 0ms, 2, harm::delays},
    {kind::refuse, "refuse", target::link, 50ms, 1500ms, 1, harm::delays},
    {kind::swallow_requests, "swallow requests", target::link, 50ms, 1500ms, 1, harm::delays},
    {kind::swallow_replies, "swallow replies", target::link, 50ms, 1500ms, 2, harm::delays},
    {kind::hold_requests, "hold requests", target::link, 50ms, 1500ms, 1, harm::delays},
    {kind::hold_replies, "hold replies", target::link, 50ms, 1500ms, 1, harm::delays},
    {kind::delay_requests, "delay requests", target::link, 500ms, 2000ms, 1, harm::delays},
    {kind::delay_replies, "delay replies", target::link, 500ms, 2000ms, 3, harm::delays},
    {kind::cut_before_reply, "cut before a reply", target::link, 500ms, 1500ms, 2, harm::delays},
    {kind::lose_reply, "lose a reply", target::link, 300ms, 1500ms, 1, harm::delays},
    {kind::lose_messages, "lose messages", target::link, 500ms, 2000ms, 1, harm::delays},
    {kind::split, "split", target::link, 300ms, 1000ms, 1, harm::delays},
    {kind::throttle, "throttle", target::link, 300ms, 1000ms, 1, harm::delays},
    {kind::forget_in_silence, "forget connections", target::link, 0ms, 0ms, 2, harm::delays},
    {kind::forget_with_reset, "forget connections and reset them", target::link, 0ms, 0ms, 1, harm::delays},
    {kind::stop_worker, "stop a worker", target::worker, 20ms, 2000ms, 9, harm::none},
    {kind::kill_worker, "kill a worker", target::worker, 50ms, 300ms, 1, harm::none},
    {kind::stop_server, "stop the server", target::server, 50ms, 1200ms, 2, harm::delays},
    {kind::restart_server, "restart the server with its data", target::server, 0ms, 0ms, 1, harm::delays},
    {kind::kill_clients, "kill clients", target::server, 0ms, 0ms, 1, harm::none},
    {kind::kill_subscribers, "kill subscribers", target::server, 0ms, 0ms, 1, harm::none},
    {kind::pause_writes, "pause writes", target::server, 100ms, 1000ms, 1, harm::delays},
    {kind::pause_everything, "pause everything", target::server, 100ms, 1000ms, 1, harm::delays},
    {kind::flush_scripts, "flush scripts", target::server, 0ms, 0ms, 1, harm::none},
    {kind::foreign_release, "foreign release", target::server, 0ms, 0ms, 2, harm::none},
    {kind::false_messages, "false messages", target::server, 0ms, 0ms, 1, harm::none},
    {kind::lose_queues, "lose queues", target::server, 0ms, 0ms, 1, harm::disorders},
    {kind::flush_all, "flush all", target::server, 0ms, 0ms, 8, harm::forgets},
    {kind::restart_empty, "restart the server empty", target::server, 0ms, 0ms, 4, harm::forgets},
    {kind::restart_old, "restart the server with old data", target::server, 50ms, 1500ms, 4, harm::returns},
    {kind::delete_lock, "delete locks", target::server, 0ms, 0ms, 8, harm::breaks},
    {kind::kill_primary, "kill a primary", target::shard, 2000ms, 3000ms, 4, harm::replaces},
    {kind::stop_primary, "stop a primary", target::shard, 2000ms, 3000ms, 4, harm::replaces},
    {kind::relieve_primary, "relieve a primary", target::shard, 1000ms, 2000ms, 4, harm::replaces},
    {kind::kill_sentinel, "kill a sentinel", target::sentinel, 500ms, 3000ms, 3, harm::silences},
    {kind::move_slots, "move slots", target::shard, 1000ms, 4000ms, 0, harm::moves},
};

}  // namespace

const fault_terms& terms_of(fault_kind k) noexcept {
  return *std::find_if(std::begin(all_terms), std::end(all_terms), [&](const auto& t) { return t.kind == k; });
}

bool deck::is_done(harm h) const {
  switch (h) {
    case harm::none: break;
    case harm::disorders: return has_fair_locks(campaign_);
    case harm::delays: return !fails_over(campaign_);
    case harm::forgets: return campaign_ == campaign::outside || campaign_ == campaign::red;
    case harm::returns: return campaign_ == campaign::red;
    case harm::breaks: return campaign_ == campaign::outside;
    case harm::replaces: return fails_over(campaign_);
    case harm::silences: return campaign_ == campaign::sentinel;
    case harm::moves: return campaign_ == campaign::cluster;
  }
  return true;
}

// Fewer callers lose an update less often: they are stopped more often.
unsigned deck::cards(const fault_terms& t) const {
  const auto times = campaign_ == campaign::red ? 3U : fails_over(campaign_) ? 2U : 1U;
  return t.kind == kind::stop_worker ? times * t.cards : t.cards;
}

fault_kind deck::deal(dice& d) {
  // In every other storm, and not in one with a failover: a replica does not hear at once which slots its primary has.
  if (of_shards_ && campaign_ == campaign::cluster && std::exchange(slots_move_, !slots_move_)) return kind::move_slots;
  if (left_.empty()) {
    for (const auto& t : all_terms)
      if (is_done(t.does) && (t.where == target::shard) == of_shards_) left_.insert(left_.end(), cards(t), t.kind);
  }
  std::swap(left_[d.below(left_.size())], left_.back());
  const auto dealt = left_.back();
  left_.pop_back();
  return dealt;
}

// A lease that outlives a failover does not beat it by much: a process is stopped for longer, too.
milliseconds deck::lasts(const fault_terms& t, dice& d) const {
  return d.between(t.shortest, fails_over(campaign_) && t.where == target::worker ? 2 * t.longest : t.longest);
}

std::vector<fault> make_storm(campaign c, deck& cards, deck& of_shards, dice& d, std::size_t workers,
                              std::size_t servers) {
  std::vector<fault> storm;
  const auto add = [&](const fault& f) {
    const bool taken = std::any_of(storm.begin(), storm.end(), [&](const fault& other) {
      return terms_of(other.kind).where == terms_of(f.kind).where && other.worker == f.worker &&
             other.server == f.server;
    });
    if (!taken) storm.push_back(f);
  };
  const auto draw = [&](deck& from) {
    const auto& dealt = terms_of(from.deal(d));
    fault f{dealt.kind, 0, 0, d.between(0ms, 800ms), {}};
    f.end = f.begin + from.lasts(dealt, d);
    if (dealt.where == target::link || dealt.where == target::worker) f.worker = d.below(workers);
    if (dealt.where == target::link || dealt.where == target::server) f.server = d.below(servers);
    add(f);
    if (dealt.where != target::server || servers == 1 || !d.per_mille(300)) return;
    f.server = (f.server + 1 + d.below(servers - 1)) % servers;
    add(f);
  };
  if (fails_over(c)) draw(of_shards);
  // One of several servers is missed by nobody.
  for (auto wanted = (2 + d.below(4)) * (servers > 1 ? 2 : 1); wanted > 0; --wanted) draw(cards);
  return storm;
}

}  // namespace holdfast::chaos
