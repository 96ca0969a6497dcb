// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promises of a fair mutex:
///   - Each caller that waits has a place in the queue. After a trouble, or a loss of the queue, it has one when its
///     client looks again.
///   - A free lock is granted to the client of the first place within a journey. Who does not come is skipped.
///   - Where no fault strikes, nobody gets the lock before a caller that came a journey earlier.
/// The residue_judge finds a place that no caller needs.
class fair_judge {
 public:
  explicit fair_judge(evidence& known) : known_(known) {}

  /// No fault strikes in this life, and nobody else uses the locks.
  void expect_order() noexcept { quiet_ = true; }
  /// A hold that is new.
  void granted(const hold_record& hold) { served_[hold.name()] = hold.client; }
  /// After each instant.
  void note_calls();
  /// Every glance.
  void look();

 private:
  /// A call that wants one name, also once.
  struct caller {
    const sim_client* client;
    std::string text;
    time_point since;
    bool waits;
    time_point alone_since;  // of its client: none of its holds may be re-entered since then
  };
  /// The lock at the node.
  struct state {
    const keyspace::entry* lock = nullptr;
    const list_value* queue = nullptr;  // null: it is empty
  };
  using line = std::pair<const sim_client*, const fair_names*>;

  bool read_state(const fair_names&, state&) const;
  bool holds(const sim_client&, const fair_names&) const;
  bool has_unknown_field(const sim_client&, const state&) const;
  std::map<std::uint64_t, caller> callers_of(const fair_names&) const;
  void judge_order(const fair_names&, const sim_client& served, const std::map<std::uint64_t, caller>& now) const;
  void look_at_places(const fair_names&, const state&);
  void look_at_head(const fair_names&, const state&);
  time_point heard_from(const sim_client&, const fair_names&);

  evidence& known_;
  bool quiet_ = false;
  std::map<std::string, const sim_client*> served_;                 // in this instant, by name
  std::map<std::string, std::map<std::uint64_t, caller>> callers_;  // by name and call
  std::map<line, time_point> short_since_;                          // a client has too few places
  std::map<std::string, std::pair<std::string, time_point>>
      free_head_;  // the first place of a free lock, and since when
  std::map<std::string, time_point> free_since_;
};

}  // namespace holdfast::sim
