// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/connection.hpp"
#include "redis/endpoint.hpp"
#include "redis/io_services.hpp"
#include "topology/cluster/cluster_nodes.hpp"
#include "topology/cluster/command_routing.hpp"
#include "topology/cluster/shard_channels.hpp"
#include "topology/cluster/slot_map.hpp"
#include "topology/cluster/slot_map_refresh.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// A Redis Cluster.
///
/// Decision: one command connection to each primary in use, and one pub/sub connection where a caller waits. There are
/// two of the latter if messages may come by two kinds of channels. All are on the one strand. A connection for each
/// slot or each caller would gain nothing from a server that runs one command at a time. It would also break the order
/// that releases rely on.
///
/// The map of slots is fetched at first use, and when an answer or the end of a connection shows a change. It is also
/// fetched once a minute while there is something to do. command_routing sends the commands.
class cluster final : public topology {
 public:
  struct plan {
    std::vector<redis::address> seeds;  // asked where no known node answers
    redis::endpoint discovered;         // how to introduce ourselves to a node; its address does not count
    reach_by reach;                     // may be empty
    std::chrono::milliseconds answer_timeout;
    std::vector<shard_channels::way> ways;  // by which kinds of channels messages may come
    std::chrono::milliseconds ttl;          // compared with the duration of a failover
  };

  /// Throws holdfast::error(invalid_config) when the nodes are to be reached by TLS and a file for it cannot be used.
  /// `events`: outage, connected, fencing_degraded; slots_moved, ttl_shorter_than_failover.
  cluster(const redis::io_services& services, plan plan, redis::connection::event_sink events);
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;
  ~cluster() override { cluster::close(); }

  node_id node_of(std::string_view key) const override { return map_.owner(slot_of(key)); }
  key_group group_of(std::string_view key) const noexcept override { return slot_of(key); }
  std::vector<std::string> name_on_each_primary(std::string_view stem) const override;
  std::string run_of(std::string_view) const override { return {}; }
  std::uint64_t server_of(std::string_view key) const override;
  redis::ticket execute(std::string_view key, redis::request asked) override;
  bool withdraw(redis::ticket ticket) override;
  bool answering(std::string_view key) override;
  bool answered_since(std::string_view key, time_point when) override;
  redis::failure trouble(std::string_view key) const override;
  bool in_outage(std::string_view key) const override;
  std::string where(std::string_view key) const override;
  void replicated(std::string_view key, const replica_demand& wanted, replicas_handler done) override;
  subscription subscribe(std::string_view channel, subscriber& subscriber) override;
  void start_pushing(std::string_view key) override;
  void stop_pushing() override;
  bool pushes(std::string_view key) const override;
  void on_key_changed(change_listener listener) override { nodes_.on_key_changed(std::move(listener)); }
  void keep_watch(bool on) override;
  void on_link_change(link_listener listener) override { nodes_.on_link_change(std::move(listener)); }
  void on_keys_moved(std::function<void(std::optional<key_group>)> listener) override {
    keys_moved_ = std::move(listener);
  }
  void close() override;

 private:
  using node = cluster_nodes::node;

  // Nodes.
  void watch_nodes();
  void drop_unused();
  void ask_node_timeout(const node& node);
  redis::failure no_owner(slot_number slot) const;
  std::string where_is(slot_number slot) const;

  // The map.
  std::vector<slot_map_refresh::candidate> candidates(std::size_t round);
  slot_map_refresh::verdict take(const slot_view& view, const redis::address& source);
  /// `only`: the one slot that has moved; nothing: several may have moved.
  void map_changed(std::size_t moved, std::optional<slot_number> only = {});
  void channel_moved(node_id from, std::string_view channel, std::string_view words);
  void nobody_knows(const redis::failure& why);
  void seed_lost(const redis::address& node, const event& event);
  bool owner_wanted() const;
  bool map_needed() const;
  void report_moved(std::size_t moved);

  const redis::io_services services_;
  const plan plan_;
  const redis::connection::event_sink events_;
  std::function<void(std::optional<key_group>)> keys_moved_;
  slot_map map_;
  cluster_nodes nodes_;
  command_routing commands_;
  std::shared_ptr<shard_channels> channels_;
  slot_map_refresh refresh_;
  std::optional<redis::failure> why_no_map_;  // the last round found none
  std::size_t unreported_moves_ = 0;
  timer report_pause_;  // runs for one second after each report
  bool watch_ = false;
  bool closed_ = false;
};

}  // namespace holdfast::detail
