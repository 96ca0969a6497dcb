// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "redis/endpoint.hpp"
#include "redis/resp.hpp"
#include "topology/cluster/slots.hpp"
#include "topology/server_list.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// An address that a node of a cluster has told: an empty host is that of the node that answered. Nothing for one that
/// cannot be used: port 0, "?", what is no host.
std::optional<redis::address> told_address(std::string_view host, long long port, const redis::address& answered_by,
                                           const reach_by& reach);

/// What one node says of all slots.
struct slot_view {
  struct range {
    slot_number first, last;
    std::optional<redis::address> primary;  // nothing: it has one, whose address is not known
  };
  std::vector<range> ranges;
};

/// Reads the reply to CLUSTER SLOTS; nothing where it is broken: then none of it is believed.
std::optional<slot_view> read_slots(const redis::reply& reply, const redis::address& answered_by,
                                    const reach_by& reach);

/// Pure: which primary has which slot, as far as we know; and a number for each server, which never names another one.
class slot_map {
 public:
  static constexpr node_id nobody = 0;

  /// Takes a node's view; returns how many slots have another owner than before. Nothing, and all stays as it was:
  /// slots occur twice; or it covers fewer slots than are known, and no other node has said the same since the last
  /// view that was taken: a node that leaves its cluster reports itself alone.
  std::optional<std::size_t> replace(const slot_view& view, const redis::address& said_by);
  /// A node says that this one slot is elsewhere. True: that is news.
  bool moved(slot_number slot, const redis::address& to);

  node_id owner(slot_number slot) const noexcept { return owners_[slot]; }
  /// Of a server that has a slot.
  const redis::address& address_of(node_id node) const { return *by_number_.at(node)->at; }
  bool owns_any(node_id node) const noexcept;
  /// Every number of a server that has a slot, each once.
  std::vector<node_id> primaries() const;
  std::size_t covered() const noexcept { return covered_; }

  /// The number of the server at this address: given when it is seen for the first time. It is kept while the server
  /// has a slot, and else until there are very many; then it gets a new one.
  node_id number_of(const redis::address& at);

 private:
  using owners = std::array<node_id, slot_count>;
  struct server {
    node_id number = nobody;
    std::size_t slots = 0;
    const redis::address* at = nullptr;
  };

  void own(slot_number slot, node_id id);
  server& entry_of(const redis::address& at);
  void forget_unused();

  owners owners_{};
  std::size_t covered_ = 0;
  std::map<redis::address, server> servers_;
  std::map<node_id, server*> by_number_;
  node_id last_number_ = nobody;
  /// The newest view that covers too little, and who has it.
  struct doubt {
    redis::address said_by;
    owners seen;
  };
  std::optional<doubt> doubt_;
};

}  // namespace holdfast::detail
