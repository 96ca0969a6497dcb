// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "integration/world.hpp"
#include "support/real_cluster.hpp"

namespace holdfast::test {

/// A cluster, and clients of ours.
struct cluster_world : client_side {
  /// `adjust` changes how a node is started.
  explicit cluster_world(const real_cluster::adjustment& adjust = {}) : rig(adjust) {}

  std::string url() const override { return rig.url(); }

  raw_client to(std::size_t node) { return raw_client(rig.node(node)); }
  raw_client to_owner(std::string_view name) { return to(rig.owner_of(name)); }
  bool exists(const std::string& name) { return to_owner(name)("EXISTS", name) == 1; }
  /// Of all primaries.
  std::vector<std::string> locks() {
    std::vector<std::string> all;
    for (const auto n : rig.primaries())
      for (const auto& key : to(n)("KEYS", "*").strings())
        if (is_lock(key)) all.push_back(key);
    return all;
  }
  /// How often clients have called this there: "cluster|slots".
  long long calls(std::size_t node, const std::string& command) {
    const auto stats = to(node)("INFO", "commandstats").to_string();
    const auto label = "cmdstat_" + command + ":calls=";
    const auto at = stats.find(label);
    return at == stats.npos ? 0 : std::stoll(stats.substr(at + label.size()));
  }
  bool told(event_kind what, std::size_t times = 1) const { return heard->count(what) >= times; }
  /// Of the lock of this name.
  bool told_of(std::string_view name, event_kind what) const {
    const auto all = heard->all();
    return std::any_of(all.begin(), all.end(), [&](const auto& e) { return e.what == what && e.name == name; });
  }
  /// Somebody waits for this name, and is subscribed: on any node, in either way. `channel`: that of the lock "m".
  bool awaited(std::string channel, const std::string& name) {
    channel.replace(channel.find("{m}"), 3, name.find('{') == name.npos ? "{" + name + "}" : name);
    for (std::size_t n = 0; n < rig.nodes; ++n) {
      if (!rig.node(n).running() || rig.node(n).stopped()) continue;
      for (const auto* how : {"NUMSUB", "SHARDNUMSUB"})
        if (const auto reply = to(n).call({"PUBSUB", how, channel}); !reply.is_error() && reply.array().at(1) == 1)
          return true;
    }
    return false;
  }
  bool awaited(const std::string& name) { return awaited("redisson_lock__channel:{m}", name); }

  real_cluster rig;
};

/// The same, where nobody fails. A busy machine keeps a node silent for a second, and no replica takes its place.
struct calm_cluster_world : cluster_world {
  explicit calm_cluster_world(const real_cluster::adjustment& adjust = {}) : cluster_world(adjust) {
    rig.configure("cluster-node-timeout", "4000");
  }
};

}  // namespace holdfast::test
