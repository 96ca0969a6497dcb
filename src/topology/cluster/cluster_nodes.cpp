// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/cluster_nodes.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::detail {

cluster_nodes::node& cluster_nodes::enter(node_id number, const redis::address& at) {
  if (const auto known = nodes_.find(number); known != nodes_.end()) return known->second;
  const auto endpoint = endpoint_.with(at);
  const auto hear = [this, number](const event& event) {
    if (event.kind == event_kind::outage && outage_) outage_(number);
    if (events_) events_(event);
  };
  node made{at,
            std::make_shared<redis::connection>(services_, endpoint, hear),
            {},
            std::make_shared<acknowledger>(services_, endpoint),
            {}};
  // The map may be older than a failover: another one will name the primary.
  made.commands->tolerate([](const redis::failure& why) { return why.code == errc::not_primary; });
  made.commands->on_link_change([this, number](bool up) {
    if (link_changed_) link_changed_(number, up);
  });
  for (const auto& way : ways_) {
    const auto& hub =
        made.channels.emplace_back(std::make_shared<redis::pubsub>(services_, endpoint, answer_timeout_, way));
    hub->on_fencing_refused(
        [connection = made.commands](const std::string& words) { connection->report_fencing(words); });
    hub->on_no_messages(
        [connection = made.commands](const redis::failure& why) { connection->report_no_messages(why); });
    hub->on_moved([this, number](std::string_view channel, std::string_view words) {
      if (channel_moved_) channel_moved_(number, channel, words);
    });
  }
  made.pushes = std::make_shared<redis::push_feed>(services_, made.commands, made.channels.front());
  made.pushes->on_changed([this, number](std::string_view key) {
    if (key_changed_) key_changed_(key, number);
  });
  return nodes_.emplace(number, std::move(made)).first->second;
}

const cluster_nodes::node* cluster_nodes::find(node_id number) const {
  const auto found = nodes_.find(number);
  return found == nodes_.end() ? nullptr : &found->second;
}

bool cluster_nodes::any(const predicate& matches) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& node) { return matches(node.first, node.second); });
}

void cluster_nodes::keep_watch(const predicate& matches) {
  for (const auto& [number, node] : nodes_) node.commands->keep_watch(node.in_use && matches(number, node));
}

void cluster_nodes::stop_pushing() {
  for (const auto& each : nodes_) each.second.pushes->stop();
}

void cluster_nodes::rest() {
  for (auto& each : nodes_) each.second.in_use = each.second.under_way != 0;
}

void cluster_nodes::all_in_use() {
  for (auto& each : nodes_) each.second.in_use = true;
}

std::vector<const cluster_nodes::node*> cluster_nodes::answering() const {
  std::vector<const node*> all;
  for (const auto& [number, node] : nodes_)
    if (node.commands->answering()) all.push_back(&node);
  return all;
}

void cluster_nodes::node::close() const {
  commands->close();
  for (const auto& hub : channels) hub->close();
  replicas->close();
  pushes->close();
}

void cluster_nodes::drop(const predicate& matches) {
  std::vector<node_id> dropped;
  std::erase_if(nodes_, [&](const auto& each) {
    const auto& [number, node] = each;
    if (!matches(number, node)) return false;
    node.close();
    dropped.push_back(number);
    return true;
  });
  for (const auto number : dropped)
    if (link_changed_) link_changed_(number, true);
}

void cluster_nodes::close() {
  for (const auto& each : nodes_) each.second.close();
  nodes_.clear();
}

}  // namespace holdfast::detail
