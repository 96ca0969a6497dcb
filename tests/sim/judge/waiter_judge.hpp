// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/judge/exclusion_judge.hpp"

namespace holdfast::sim {

/// The promise that no waiter is forgotten: a lock that is free is granted within a journey. After a trouble it is
/// granted within retries and reconnection.
///   - A lock is free where it is free at a majority of the nodes that have their vote and are undisturbed.
///   - A caller that wants several waits while one of them is not free. Others of its client wait behind it.
///   - A lock that became free without a message is found by the poll.
class waiter_judge {
 public:
  waiter_judge(evidence& known, const exclusion_judge& exclusion)
      : known_(known), exclusion_(exclusion), nodes_(known.stored.nodes()) {}

  /// The machine has no vote until the longest TTL is over.
  void vote_lost(std::size_t machine) { nodes_[known_.servers.unit_of(machine)].vote_lost = known_.now(); }
  /// The node has answered that this field can never have the lock. A caller that wants any one of several waits for
  /// the others.
  void refused_for_good(const std::string& name, const std::string& field);
  void look();

 private:
  struct node_record {
    std::optional<time_point> vote_lost{};  // the last time
    std::map<std::string, std::optional<time_point>> free_since{};
  };
  using place = std::pair<const sim_client*, std::string>;  // of a client, at a name

  /// No owner holds it, there or at a majority. An attempt that may give back its field is no owner.
  bool is_free(std::size_t node, const std::string& name);
  bool is_free(const std::string& name);
  bool gives_back(std::size_t node, const std::string& name, const std::string& field);
  time_point last_silence_about(const std::string& name, const sim_client& client);
  bool judged_elsewhere(const std::string& name) const;
  void note_kept_names();
  void note_free_names();
  time_point could_be_granted_since(const call_record& call, const std::string& name);

  evidence& known_;
  const exclusion_judge& exclusion_;
  std::vector<node_record> nodes_;
  // A caller that wants several keeps this name from others while it waits for another: now, and when it last did.
  std::set<place> kept_;
  std::map<place, time_point> kept_at_;
};

}  // namespace holdfast::sim
