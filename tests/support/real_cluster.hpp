// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/real_redis.hpp"

namespace holdfast::test {

/// A cluster of three primaries with one replica each, on ports of 127.0.0.1. A node is away after one second of
/// silence: a failover takes 2 to 3 s, a planned one 0.1 s. Nodes have numbers; 0 to 2 are primaries at first. One
/// thread at a time.
class real_cluster {
 public:
  static constexpr std::size_t shards = 3, nodes = 6;

  /// Returns when each node says that the cluster is whole, and each replica has what its primary has. Throws
  /// std::runtime_error with the logs when they do not.
  /// `adjust` may change how a node is started.
  using adjustment = std::function<void(std::size_t node, redis_options&)>;
  explicit real_cluster(const adjustment& adjust = {});
  real_cluster(const real_cluster&) = delete;
  real_cluster& operator=(const real_cluster&) = delete;

  /// For holdfast::config::url, with all nodes.
  std::string url() const;
  real_redis& node(std::size_t n) { return nodes_.at(n); }
  /// On every node, now and when it is started again.
  void configure(const std::string& parameter, const std::string& value);

  unsigned slot_of(std::string_view key);
  using range = std::pair<unsigned, unsigned>;  // from, to
  std::vector<range> slots_of(std::size_t n);
  /// The number of the living primary that has the slot, or the slot of the key.
  std::size_t owner(unsigned slot);
  std::size_t owner_of(std::string_view key) { return owner(slot_of(key)); }
  /// The primaries that live, of each shard one at most.
  std::vector<std::size_t> primaries();
  /// The other node of its shard: the replica of a primary. They stay together.
  static std::size_t partner_of(std::size_t n) noexcept { return (n + shards) % nodes; }
  /// A name that begins with `stem` and whose slot this primary has.
  std::string name_on(std::size_t primary, std::string_view stem = "m");
  /// Names of so many different slots of one primary.
  std::vector<std::string> names_on(std::size_t primary, std::size_t count, std::string_view stem = "m");

  /// Returns when the replicas of all living primaries have all that their primary has executed.
  void replicate();
  /// Whether the replica of this dead or stopped primary has taken its place, serves, and all living nodes know.
  bool promoted(std::size_t primary);
  /// Returns the replica that takes the place of this dead or stopped primary, once it has been promoted().
  std::size_t wait_for_promotion(std::size_t primary);
  /// What an operator does: CLUSTER FAILOVER. Returns the same.
  std::size_t fail_over(std::size_t primary);
  /// Returns when all nodes live and all say that the cluster is whole.
  void wait_until_whole();

  /// The steps of moving a slot to another primary. Between the first and the last one, the source answers ASK for keys
  /// that it does not have; what is there stays there until the second.
  void begin_move(unsigned slot, std::size_t to);
  bool move_some_keys(unsigned slot, std::size_t to, std::size_t at_most);  ///< false: none is left
  void move_keys(unsigned slot, std::size_t to);
  void end_move(unsigned slot, std::size_t to);
  void move(unsigned slot, std::size_t to);
  void move(std::string_view key, std::size_t to) { move(slot_of(key), to); }

  /// As it was, except which node is whose primary and which slots it has: all live, the replicas have what their
  /// primaries have.
  void mend();
  /// The same, nothing moves, and there is no data.
  void reset();

 private:
  /// What a node says of itself.
  struct self {
    bool primary = false;
    std::vector<range> slots;
    std::vector<unsigned> moving;  // slots that migrate or are imported
    bool has(unsigned slot) const;
  };
  void form();
  self look(std::size_t n);
  bool whole(std::size_t n);
  bool all_whole();
  bool all_say(const std::string& id, unsigned slot);

  std::deque<real_redis> nodes_;
  std::vector<std::string> ids_;
};

}  // namespace holdfast::test
