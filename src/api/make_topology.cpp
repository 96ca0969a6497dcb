// SPDX-License-Identifier: BSL-1.0
#include "api/make_topology.hpp"

#include <utility>
#include <vector>

#include "topology/cluster/cluster.hpp"
#include "topology/quorum.hpp"
#include "topology/sentinel/sentinel.hpp"
#include "topology/standalone/standalone.hpp"

namespace holdfast::detail {
namespace {

std::vector<shard_channels::way> ways_of(pubsub_mode mode) {
  using redis::channel_kind;
  switch (mode) {
    case pubsub_mode::automatic: break;
    case pubsub_mode::classic: return {channel_kind::classic};
    case pubsub_mode::sharded: return {channel_kind::sharded};
    case pubsub_mode::both: return {channel_kind::classic, std::nullopt};  // as the scripts have it
  }
  return {std::nullopt};
}

std::unique_ptr<topology> make_cluster(const redis::io_services& services, const server_list& servers,
                                       const config& behaviour, redis::connection::event_sink events) {
  cluster::plan plan{{},
                     servers.discovered,
                     reach_of(servers.node_map),
                     behaviour.command_timeout,
                     ways_of(behaviour.cluster.pubsub),
                     behaviour.ttl};
  for (const auto& server : servers.servers) plan.seeds.push_back(server.at);
  return std::make_unique<cluster>(services, std::move(plan), std::move(events));
}

}  // namespace

std::unique_ptr<topology> make_topology(const redis::io_services& services, const server_list& servers,
                                        const config& behaviour, redis::connection::event_sink events) {
  if (servers.kind == deployment::cluster) return make_cluster(services, servers, behaviour, std::move(events));
  if (servers.kind == deployment::sentinel)
    return std::make_unique<sentinel>(services, servers, behaviour, std::move(events));
  std::vector<std::unique_ptr<topology>> each;
  for (const auto& server : servers.servers)
    each.push_back(std::make_unique<standalone>(services, server, behaviour.command_timeout, events));
  if (each.size() == 1) return std::move(each.front());
  return std::make_unique<quorum>(services.alarms, services.time, std::move(each));
}

}  // namespace holdfast::detail
