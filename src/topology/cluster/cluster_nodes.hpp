// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/connection.hpp"
#include "redis/endpoint.hpp"
#include "redis/io_services.hpp"
#include "redis/pubsub.hpp"
#include "redis/push_feed.hpp"
#include "topology/cluster/shard_channels.hpp"
#include "topology/replicas/acknowledger.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// The nodes of a cluster that are in use, by their numbers: for each its connections, made when they are needed.
class cluster_nodes final {
 public:
  struct node {
    redis::address at;
    std::shared_ptr<redis::connection> commands;
    std::vector<std::shared_ptr<redis::pubsub>> channels;  // one for each way
    std::shared_ptr<acknowledger> replicas;
    std::shared_ptr<redis::push_feed> pushes;
    std::size_t under_way = 0;  // commands
    bool in_use = false;        // commands were sent there since rest(), or keys have come there

    void close() const;
  };
  using predicate = std::function<bool(node_id, const node&)>;

  /// `endpoint`: to introduce ourselves. `ways`: by which kinds of channels messages may come. `events`: of the command
  /// connections.
  cluster_nodes(const redis::io_services& services, redis::endpoint endpoint, std::chrono::milliseconds answer_timeout,
                std::vector<shard_channels::way> ways, redis::connection::event_sink events)
      : services_(services), endpoint_(std::move(endpoint)), answer_timeout_(answer_timeout), ways_(std::move(ways)),
        events_(std::move(events)) {}

  /// Adds the node if its number is new.
  node& enter(node_id number, const redis::address& at);
  node& at(node_id number) { return nodes_.at(number); }
  const node* find(node_id number) const;
  bool any(const predicate& matches) const;
  /// Watches the nodes in use that match, and no others.
  void keep_watch(const predicate& matches);
  /// No lock is held any more: only nodes with commands under way stay in use.
  void rest();
  /// Keys may have come to any node.
  void all_in_use();
  void on_link_change(topology::link_listener listener) { link_changed_ = std::move(listener); }
  /// As topology::on_key_changed(). One listener.
  void on_key_changed(topology::change_listener listener) { key_changed_ = std::move(listener); }
  void stop_pushing();
  /// The command connection to a node has ended, or could not be made. One listener.
  void on_outage(std::function<void(node_id)> listener) { outage_ = std::move(listener); }
  /// As redis::pubsub::on_moved(). One listener.
  void on_channel_moved(std::function<void(node_id, std::string_view channel, std::string_view words)> listener) {
    channel_moved_ = std::move(listener);
  }
  /// The nodes whose command connection answers.
  std::vector<const node*> answering() const;
  /// Closes the nodes that match. The listener is notified that their links are up: nothing waits for them any more.
  void drop(const predicate& matches);
  void close();

 private:
  const redis::io_services services_;
  const redis::endpoint endpoint_;
  const std::chrono::milliseconds answer_timeout_;
  const std::vector<shard_channels::way> ways_;
  const redis::connection::event_sink events_;
  topology::link_listener link_changed_;
  topology::change_listener key_changed_;
  std::function<void(node_id)> outage_;
  std::function<void(node_id, std::string_view, std::string_view)> channel_moved_;
  std::map<node_id, node> nodes_;
};

}  // namespace holdfast::detail
