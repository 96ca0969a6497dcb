// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/replication.hpp"
#include "testing/sim/trace.hpp"

namespace holdfast::sim {

/// A Redis cluster: three primaries with a third of the slots each, and a replica of each. Slots move from one to
/// another key by key; a replica takes the place of a primary that the others have not reached for a while, or that
/// it is told to replace. What one node learns the others learn a little later.
class cluster {
 public:
  using member = replication::member;
  static constexpr std::size_t shards = 3;

  struct times {
    nanoseconds node_timeout;
    nanoseconds slowest_word;  // from one node to another
    nanoseconds slowest_step;  // of a move
  };
  cluster(scheduler& plan, std::deque<server>& all, replication& data, detail::random_source& random, trace& log,
          times t);

  /// Who has this key, or would.
  member owner(std::string_view key) const;
  /// It may answer for this key: of a slot that moves, both ends.
  bool serves(member m, std::string_view key) const;
  /// Each primary, as the newest map has it.
  std::vector<member> primaries() const { return {primary_.begin(), primary_.end()}; }
  /// Something has become of a machine, or of the ways between them.
  void look();
  /// CLUSTER FAILOVER of the shard: no acknowledged write is lost. False: it has no good replica, or other work.
  bool fail_over(std::size_t shard);
  /// Moves the slot to another shard. False: it moves already, or one of the two has other work.
  bool move(slot_number slot, std::size_t to_shard);
  bool moves(slot_number slot) const { return open_.contains(slot); }
  std::size_t shard_of(slot_number slot) const { return shard_of_[slot]; }
  /// Each primary runs and is reached by the others, and each node that runs knows which they are.
  bool settled() const;

  /// A replica becomes the primary. Both still have what they had.
  std::function<void(member from, member to)> on_promotion = [](member, member) {};
  /// A key has been lost with the move of its slot.
  std::function<void(const std::string& key)> on_key_lost = [](const auto&) {};
  /// A slot has come to its new shard.
  std::function<void(slot_number)> on_moved = [](slot_number) {};

 private:
  struct opened {
    std::size_t from, to;  // shards
    bool leaves = false;   // the source knows of it
  };

  slot_view& view(member m) { return all_[m].program().slots(); }
  bool reached(member m) const { return all_[m].running() && !data_.isolated(m); }
  std::optional<member> replica_of(std::size_t shard) const;
  bool busy(std::size_t shard) const;
  void check_shard(std::size_t shard);
  bool complete() const;
  void check_service();
  void promote(std::size_t shard, bool planned);
  void give_up_moves_of(std::size_t shard);
  void tell(const std::function<void(slot_view&)>& what, std::set<member> who_knows);
  void hear(member m);
  void bring_in_line();
  void migrate_next_key(slot_number slot);
  void finish_move(slot_number slot);
  void later(nanoseconds most, std::function<void()> what) { plan_.after(random_.up_to(most), std::move(what)); }

  scheduler& plan_;
  std::deque<server>& all_;
  replication& data_;
  detail::random_source& random_;
  trace& log_;
  const times times_;
  std::vector<std::uint8_t> shard_of_;  // of each slot
  std::vector<member> primary_;         // of each shard
  std::map<slot_number, opened> open_;
  std::vector<std::deque<std::function<void(slot_view&)>>> unheard_;  // by each node, in order
  std::vector<std::optional<time_point>> missed_since_;               // the primary of each shard
  std::vector<bool> failing_over_;
  time_point heard_by_all_{};  // what has become of a machine
  std::set<member> old_;       // primaries that do not know yet that they are none
};

}  // namespace holdfast::sim
