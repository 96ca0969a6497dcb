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

std::unique_ptr<topology> make_cluster(const redis::io_services& given, const server_list& which,
                                       const config& behaviour, redis::connection::event_sink events) {
  cluster::plan p{
      {},           which.discovered, reach_of(which.node_map), behaviour.command_timeout, ways_of(behaviour.pubsub),
      behaviour.ttl};
  for (const auto& server : which.servers) p.seeds.push_back(server.at);
  return std::make_unique<cluster>(given, std::move(p), std::move(events));
}

}  // namespace

std::unique_ptr<topology> make_topology(const redis::io_services& given, const server_list& which,
                                        const config& behaviour, redis::connection::event_sink events) {
  if (which.kind == deployment::cluster) return make_cluster(given, which, behaviour, std::move(events));
  if (which.kind == deployment::sentinel) return std::make_unique<sentinel>(given, which, behaviour, std::move(events));
  std::vector<std::unique_ptr<topology>> each;
  for (const auto& server : which.servers)
    each.push_back(std::make_unique<standalone>(given, server, behaviour.command_timeout, events));
  if (each.size() == 1) return std::move(each.front());
  return std::make_unique<quorum>(given.alarms, given.time, std::move(each));
}

}  // namespace holdfast::detail
