// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/cluster_nodes.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::detail {

cluster_nodes::node& cluster_nodes::enter(node_id number, const redis::address& at) {
  if (const auto known = nodes_.find(number); known != nodes_.end()) return known->second;
  const auto endpoint = how_.with(at);
  const auto hear = [this, number](const event& e) {
    if (e.what == event_kind::outage && outage_) outage_(number);
    if (events_) events_(e);
  };
  node made{at,
            std::make_shared<redis::connection>(given_, endpoint, hear),
            {},
            std::make_shared<acknowledger>(given_, endpoint)};
  // The map may be older than a failover: another one will say who is the primary.
  made.commands->tolerate([](const redis::failure& why) { return why.code == errc::not_primary; });
  made.commands->on_link_change([this, number](bool up) {
    if (link_changed_) link_changed_(number, up);
  });
  for (const auto& way : ways_) {
    const auto& hub =
        made.channels.emplace_back(std::make_shared<redis::pubsub>(given_, endpoint, answer_timeout_, way));
    hub->on_fencing_refused([c = made.commands](const std::string& words) { c->report_fencing(words); });
    hub->on_no_messages([c = made.commands](const redis::failure& why) { c->report_no_messages(why); });
    hub->on_moved([this, number](std::string_view channel, std::string_view words) {
      if (channel_moved_) channel_moved_(number, channel, words);
    });
  }
  return nodes_.emplace(number, std::move(made)).first->second;
}

const cluster_nodes::node* cluster_nodes::find(node_id number) const {
  const auto found = nodes_.find(number);
  return found == nodes_.end() ? nullptr : &found->second;
}

bool cluster_nodes::any(const which& of) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& n) { return of(n.first, n.second); });
}

void cluster_nodes::keep_watch(const which& of) {
  for (const auto& [number, n] : nodes_) n.commands->keep_watch(n.in_use && of(number, n));
}

void cluster_nodes::rest() {
  for (auto& each : nodes_) each.second.in_use = each.second.under_way != 0;
}

void cluster_nodes::all_in_use() {
  for (auto& each : nodes_) each.second.in_use = true;
}

std::vector<const cluster_nodes::node*> cluster_nodes::answering() const {
  std::vector<const node*> all;
  for (const auto& [number, n] : nodes_)
    if (n.commands->answering()) all.push_back(&n);
  return all;
}

void cluster_nodes::node::close() const {
  commands->close();
  for (const auto& hub : channels) hub->close();
  replicas->close();
}

void cluster_nodes::drop(const which& of) {
  std::vector<node_id> dropped;
  std::erase_if(nodes_, [&](const auto& each) {
    const auto& [number, n] = each;
    if (!of(number, n)) return false;
    n.close();
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
