// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promises of a shared mutex:
///   - A reader that the lock admits is granted when it looks again, and so is a writer. A client looks twice a second.
///     The lock admits readers while nobody writes and no client waits to write. It admits a writer while it is free,
///     or only dead readers have it, and it is no other client's turn.
///   - Where no fault strikes and nobody else uses the lock, waits have bounds. A writer waits for the readers of the
///     moment. For each writing client before it, it waits for one turn of writes and one phase of readers. A reader
///     waits for one turn of writes, and for the readers that this turn waits for.
///   - Where no fault strikes, a reader that has left has no deadline.
/// The promises about time are made to the first waiter of a client.
class shared_judge {
 public:
  explicit shared_judge(evidence& known) : known_(known) {}

  /// No fault strikes in this life.
  void expect_bounds() noexcept {
    quiet_ = true;
    quiet_from_ = known_.now() + bounds::first_connections;
  }
  /// After each script and each instant, before anybody looks at claims.
  void excuse_endless();
  void granted(const detail::lease_record&);
  /// After each instant.
  void note_sections();
  /// Every glance.
  void look();

 private:
  /// The lock at the node.
  struct state {
    bool read = false, readers_live = false, written = false;
    const std::string* turn = nullptr;
    bool door = false;  // a client waits to write
  };
  /// A first waiter.
  struct waiter {
    const call_record* call;
    const shared_names* of;
    time_point since;
    time_point admitted_since;
    std::set<const sim_client*> writers_before{};
    bool reads_before = false;  // there were readers when it came
    bool barred = false;        // by a writer of its own client
  };
  /// The time in which one owner has a lease. Readers of several owners may share a hold.
  struct section {
    detail::hold_ptr hold;  // so that its address is no other hold's
    owner_id owner;
    bool writes;
    time_point began, seen;
    bool over = false;
  };

  bool read_state(const shared_names&, state&) const;
  static bool admits(const state&, const call_record&);
  void look_at_deadlines() const;
  void look_at(waiter&);
  bool writes(const sim_client&, const shared_names&) const;
  void note_others(waiter&, const state&) const;
  void judge_bound(const waiter&) const;
  nanoseconds longest(const shared_names&, bool writes, time_point since) const;
  bool keeps_door(const std::string& client, const shared_names&) const;

  evidence& known_;
  std::map<std::uint64_t, waiter> first_;                      // by call
  std::map<std::string, std::vector<section>> past_sections_;  // by name
  bool quiet_ = false;
  time_point quiet_from_{};
};

}  // namespace holdfast::sim
