// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include "chaos/workload.hpp"

namespace holdfast::chaos {

enum class fault_kind {
  // on one worker's way to the server
  cut,
  refuse,
  swallow_requests,
  swallow_replies,
  hold_requests,
  hold_replies,
  delay_requests,
  delay_replies,
  cut_before_reply,
  lose_reply,
  lose_messages,
  split,
  throttle,
  // of one worker
  stop_worker,
  kill_worker,
  // of the server
  stop_server,
  restart_server,
  kill_clients,
  kill_subscribers,
  pause_writes,
  pause_everything,
  // harmless
  flush_scripts,
  foreign_release,
  false_messages,
  // beyond what a lock on one server can survive
  flush_all,
  restart_empty,
  delete_lock,
};

enum class target { link, worker, server };

/// What there is to know of a kind of fault.
struct fault_terms {
  fault_kind kind;
  std::string_view name;
  target where;
  milliseconds shortest, longest;  ///< how long one lasts
  unsigned cards;                  ///< how many of them are in the deck
  bool breaks_locks;               ///< only where the guarantee does not hold
};
const fault_terms& terms_of(fault_kind) noexcept;

/// One fault of a storm.
struct fault {
  fault_kind kind;
  std::size_t worker;       ///< whom it concerns, unless it is the server
  milliseconds begin, end;  ///< since the start of the storm
};

/// Deals every kind in turn, so that each comes up.
class deck {
 public:
  explicit deck(bool with_broken_locks) : with_broken_locks_(with_broken_locks) {}
  fault_kind deal(dice&);

 private:
  const bool with_broken_locks_;
  std::vector<fault_kind> left_;
};

/// A few faults that overlap, at most one for each target. The same for the same seed.
std::vector<fault> make_storm(deck&, dice&, std::size_t workers);

}  // namespace holdfast::chaos
