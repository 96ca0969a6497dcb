// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promise that nothing is left:
///   - A client's field, permit, door or place in a queue belongs to a hold or to an open call. Otherwise it is given
///     back as soon as its client is undisturbed. To an open call belong no more permits than it asks for, and one
///     place in the queue of a fair mutex.
///   - A client that has closed undisturbed has left no field.
///   - At the end there is no key but counters and votes, no permit that is out, and no subscription.
/// The places of a peer, and of a client that was closed in a trouble, are not judged.
/// A node that became a replica takes no field back.
class residue_judge {
 public:
  explicit residue_judge(evidence& known) : known_(known) {}

  /// A command of a dead connection that its client could not fence off has run there.
  void ran_unfenced(std::size_t machine, const arguments& command);
  /// Each key that the node has lives that much longer.
  void clock_stepped_back(std::size_t machine, nanoseconds by);
  void look();
  /// Each call was answered and each lock unlocked; each TTL that nobody renewed since is over, unless the clock was
  /// stepped back.
  void look_for_survivors();
  /// Each TTL is over.
  void look_at_the_end();

 private:
  void note_awake_clients();
  bool is_held(const std::string& field) const;
  bool has_needless_places(std::size_t node, const fair_names&, const sim_client&) const;
  bool is_abandoned(std::string_view place) const;
  bool has_only_strangers(const std::string& key, const keyspace::entry&) const;
  void note_unasked_permits();
  void visit_fields();
  void look_at(std::size_t node, const std::string& key, const std::string& field, field_record&, time_point end);

  evidence& known_;
  std::map<const sim_client*, time_point> awake_since_;  // those that wait or hold
  std::set<std::string> unasked_;                        // permits and doors that no call asks for
};

}  // namespace holdfast::sim
