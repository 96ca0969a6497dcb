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

/// An address as a node of a cluster reports it: an empty host is the host of the node that answered. Nothing for an
/// address that cannot be used: port 0, "?", or bytes that are no host.
std::optional<redis::address> announced_address(std::string_view host, long long port,
                                                const redis::address& answered_by, const reach_by& reach);

/// The owners of all slots as one node sees them.
struct slot_view {
  struct range {
    slot_number first, last;
    std::optional<redis::address> primary;  // nothing: the range has a primary with an unknown address
  };
  std::vector<range> ranges;
};

/// Reads the reply to CLUSTER SLOTS; nothing if any part of it is broken.
///
/// Decision: CLUSTER SLOTS. Every version and every emulation has it, and the primary stands first in each range. The
/// ports are those of the asking connection's kind, plain or TLS.
std::optional<slot_view> read_slots(const redis::reply& reply, const redis::address& answered_by,
                                    const reach_by& reach);

/// Pure: the known owner of each slot, and a number for each server. A number never names another server.
///
/// Decision: the map does not shrink on one node's word. A node that leaves its cluster reports itself alone. So a view
/// that covers fewer slots is taken only if a second node reports the same.
class slot_map {
 public:
  static constexpr node_id nobody = 0;

  /// Takes a node's view; returns the number of slots that have a new owner. A view is refused if slots occur twice. A
  /// view that covers fewer slots than are known is refused until another node reports the same, with no accepted view
  /// in between. Empty: the view was refused, and nothing has changed.
  std::optional<std::size_t> replace(const slot_view& view, const redis::address& source);
  /// A node reports the owner of this one slot. True: the owner is new.
  bool moved(slot_number slot, const redis::address& to);

  node_id owner(slot_number slot) const noexcept { return owners_[slot]; }
  /// The address of a server that has a slot.
  const redis::address& address_of(node_id node) const { return *by_number_.at(node)->at; }
  bool owns_any(node_id node) const noexcept;
  /// The numbers of all servers that have a slot.
  std::vector<node_id> primaries() const;
  std::size_t covered() const noexcept { return covered_; }

  /// The number of the server at this address, given when the address is seen for the first time. A server without a
  /// slot loses its number once there are very many servers, and gets a new one later.
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
  /// The newest view that covers too little, and the node that reported it.
  struct doubt {
    redis::address source;
    owners seen;
  };
  std::optional<doubt> doubt_;
};

}  // namespace holdfast::detail
