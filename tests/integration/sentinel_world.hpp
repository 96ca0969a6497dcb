// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <deque>
#include <exception>
#include <string>
#include <vector>

#include "integration/world.hpp"
#include "support/proxy.hpp"
#include "support/real_sentinel.hpp"

namespace holdfast::test {

/// A primary with two replicas, three sentinels, and clients of ours that follow them. The sentinels are calm: else a
/// busy machine has a failover in any test.
struct sentinel_world : client_side {
  std::string url() const override { return rig.url(); }

  raw_client to_primary() { return raw_client(rig.primary()); }
  /// Of the primary.
  std::vector<std::string> locks() {
    auto all = to_primary()("KEYS", "*").strings();
    std::erase_if(all, [](const auto& key) { return !is_lock(key); });
    return all;
  }
  /// A server that is promoted closes its connections, also one that asks at that moment.
  bool is_primary(std::size_t server) {
    try {
      return raw_client(rig.server(server))("ROLE").array().at(0) == "master";
    } catch (const std::exception&) {
      return false;
    }
  }
  /// No as well when a sentinel does not answer in time.
  bool announced() {
    try {
      return rig.announced();
    } catch (const std::exception&) {
      return false;
    }
  }
  /// Until a replica has taken the place of the primary, which goes on and does not know: nobody is told yet.
  void until_promoted() {
    until([this] { return is_primary(rig.replica_number(0)) || is_primary(rig.replica_number(1)); }, 20s);
  }
  /// While the clients run: they learn of it in the same moment.
  void until_announced() {
    until([this] { return announced(); }, 20s);
  }
  bool told(event_kind what, std::size_t times = 1) const { return heard->count(what) >= times; }

  real_sentinel rig{real_sentinel::calm};
};

/// The same, with a proxy before each sentinel, the only way by which clients reach it.
struct far_sentinels_world : sentinel_world {
  far_sentinels_world() {
    for (std::size_t n = 0; n < rig.sentinels; ++n) nets.emplace_back(rig.sentinel(n), proxy_options{.tcp = true});
  }

  static std::string address(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }
  template <class Change>
  client make(Change change) {
    return sentinel_world::make([&](config& c) {
      c.url = "redis+sentinel://" + address(nets[0].port()) + "," + address(nets[1].port()) + "," +
              address(nets[2].port()) + "/" + rig.name;
      for (std::size_t n = 0; n < rig.sentinels; ++n)
        c.node_map.emplace_back(address(rig.sentinel(n).port()), address(nets[n].port()));
      change(c);
    });
  }
  client make() {
    return make([](config&) {});
  }

  std::deque<proxy> nets;
};

}  // namespace holdfast::test
