// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>

#include "redis/endpoint.hpp"
#include "redis/failure.hpp"
#include "redis/io_services.hpp"
#include "redis/outcome.hpp"
#include "redis/request.hpp"
#include "topology/cluster/cluster_nodes.hpp"
#include "topology/cluster/redirects.hpp"
#include "topology/cluster/routed_command.hpp"
#include "topology/cluster/slot_map.hpp"

namespace holdfast::detail {

/// The router of a cluster's commands: sends each to the owner of its slot, follows redirects and refusals as
/// `redirects` decides, and answers its sender.
///
/// A command whose slot has no known owner waits, as for a connection. A command that was not written yet follows its
/// slot to another node.
class command_routing final : private routed_command::router {
 public:
  using node = cluster_nodes::node;
  struct owner {
    /// The map of slots may be old.
    std::function<void()> ask_map;
    /// A node has named another owner of one slot.
    std::function<void(const redirect&)> slot_moved;
    /// The reason why a slot has no known owner.
    std::function<redis::failure(slot_number)> no_owner;
    /// A command is about to be sent to a node that was not in use.
    std::function<void(node_id, const node&)> node_used;
    /// The first command of all was sent to this node.
    std::function<void(const node&)> first_sent;
  };

  /// `introduction`: how to introduce ourselves to a node. The references outlive this object.
  command_routing(const redis::io_services& services, const redis::endpoint& introduction, const reach_by& reach,
                  slot_map& map, cluster_nodes& nodes, owner callbacks)
      : services_(services), introduction_(introduction), reach_(reach), map_(map), nodes_(nodes),
        owner_(std::move(callbacks)) {}
  command_routing(const command_routing&) = delete;
  command_routing& operator=(const command_routing&) = delete;

  redis::ticket execute(slot_number slot, redis::request asked);
  /// True: the command was not written, and is forgotten.
  bool withdraw(redis::ticket number);
  /// A command waits for the owner of its slot.
  bool owner_wanted() const { return !open_.all(waits_for_an_owner).empty(); }
  /// The commands that wait for an owner get this answer.
  void answer_homeless(const redis::failure& why);
  /// A node that a redirect has named may be lost: its commands go back to the owners of their slots.
  void node_lost(node_id lost);
  /// The commands that were not written go to the owners that the new map has for their slots, in their order.
  void map_changed();
  /// The node that a slot is moving to, by ASK; known until forget_moves().
  std::optional<node_id> moving_to(slot_number slot) const;
  void forget_moves() noexcept { moving_to_.clear(); }
  void close() noexcept { open_.clear(); }

 private:
  static bool waits_for_an_owner(const routed_command& command) {
    return command.at == slot_map::nobody && command.resume == time_point::max();
  }

  void heard(routed_command& command, const redis::outcome& outcome) override;
  void send(routed_command& command);
  void send_to(node_id number, const redis::address& at, routed_command& command);
  void named_lost(routed_command& command);
  void wait(routed_command& command);
  void waited(routed_command& command);
  bool leaves_node(routed_command& command);
  void left_node(routed_command& command);
  void finish(routed_command& command, const redis::outcome& outcome);
  void give_up(routed_command& command);
  redis::outcome refused(const routed_command& command) const;

  const redis::io_services services_;
  const redis::endpoint& introduction_;
  const reach_by& reach_;
  slot_map& map_;
  cluster_nodes& nodes_;
  const owner owner_;
  std::map<slot_number, node_id> moving_to_;
  open_commands open_;
  bool sent_any_ = false;
};

}  // namespace holdfast::detail
