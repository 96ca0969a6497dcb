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
    {kind::cut, "cut", target::link, 0ms, 0ms, 2, false},
    {kind::refuse, "refuse", target::link, 50ms, 1500ms, 1, false},
    {kind::swallow_requests, "swallow requests", target::link, 50ms, 1500ms, 1, false},
    {kind::swallow_replies, "swallow replies", target::link, 50ms, 1500ms, 2, false},
    {kind::hold_requests, "hold requests", target::link, 50ms, 1500ms, 1, false},
    {kind::hold_replies, "hold replies", target::link, 50ms, 1500ms, 1, false},
    {kind::delay_requests, "delay requests", target::link, 500ms, 2000ms, 1, false},
    {kind::delay_replies, "delay replies", target::link, 500ms, 2000ms, 3, false},
    {kind::cut_before_reply, "cut before a reply", target::link, 500ms, 1500ms, 2, false},
    {kind::lose_reply, "lose a reply", target::link, 300ms, 1500ms, 1, false},
    {kind::lose_messages, "lose messages", target::link, 500ms, 2000ms, 1, false},
    {kind::split, "split", target::link, 300ms, 1000ms, 1, false},
    {kind::throttle, "throttle", target::link, 300ms, 1000ms, 1, false},
    {kind::stop_worker, "stop a worker", target::worker, 20ms, 2000ms, 9, false},
    {kind::kill_worker, "kill a worker", target::worker, 50ms, 300ms, 1, false},
    {kind::stop_server, "stop the server", target::server, 50ms, 1200ms, 2, false},
    {kind::restart_server, "restart the server with its data", target::server, 0ms, 0ms, 1, false},
    {kind::kill_clients, "kill clients", target::server, 0ms, 0ms, 1, false},
    {kind::kill_subscribers, "kill subscribers", target::server, 0ms, 0ms, 1, false},
    {kind::pause_writes, "pause writes", target::server, 100ms, 1000ms, 1, false},
    {kind::pause_everything, "pause everything", target::server, 100ms, 1000ms, 1, false},
    {kind::flush_scripts, "flush scripts", target::server, 0ms, 0ms, 1, false},
    {kind::foreign_release, "foreign release", target::server, 0ms, 0ms, 2, false},
    {kind::false_messages, "false messages", target::server, 0ms, 0ms, 1, false},
    {kind::flush_all, "flush all", target::server, 0ms, 0ms, 8, true},
    {kind::restart_empty, "restart the server empty", target::server, 0ms, 0ms, 4, true},
    {kind::delete_lock, "delete locks", target::server, 0ms, 0ms, 8, true},
};

}  // namespace

const fault_terms& terms_of(fault_kind k) noexcept {
  return *std::find_if(std::begin(all_terms), std::end(all_terms), [&](const auto& t) { return t.kind == k; });
}

fault_kind deck::deal(dice& d) {
  if (left_.empty()) {
    for (const auto& t : all_terms)
      if (!t.breaks_locks || with_broken_locks_) left_.insert(left_.end(), t.cards, t.kind);
  }
  std::swap(left_[d.below(left_.size())], left_.back());
  const auto dealt = left_.back();
  left_.pop_back();
  return dealt;
}

std::vector<fault> make_storm(deck& cards, dice& d, std::size_t workers) {
  std::vector<fault> storm;
  const auto wanted = 2 + d.below(4);
  for (std::uint64_t i = 0; i < wanted; ++i) {
    const auto& dealt = terms_of(cards.deal(d));
    fault f{dealt.kind, dealt.where == target::server ? 0 : d.below(workers), d.between(0ms, 800ms), {}};
    f.end = f.begin + d.between(dealt.shortest, dealt.longest);
    const bool taken = std::any_of(storm.begin(), storm.end(), [&](const fault& other) {
      const auto where = terms_of(other.kind).where;
      return where == dealt.where && other.worker == f.worker;
    });
    if (!taken) storm.push_back(f);
  }
  return storm;
}

}  // namespace holdfast::chaos
