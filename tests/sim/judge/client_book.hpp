// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/judge/bounds.hpp"
#include "sim/sim_client.hpp"

namespace holdfast::sim {

/// What lies between a client and a node.
struct link_record {
  time_point clear_since{};  // in the future: nothing is expected until then
  time_point trouble_began{};
};

struct client_record {
  sim_client* client;
  std::vector<link_record> links;  // to each node
  time_point last_message_lost{};
  std::map<std::string, time_point> pushed{};  // the last change of each key
  std::optional<time_point> closing_in_peace{};
  bool closed_in_peace = false;
};

/// All clients, and since when each of them is undisturbed. Nothing is expected of a client in trouble.
class client_book {
 public:
  client_book(scheduler& plan, deployment& servers) : plan_(plan), servers_(servers) {}

  void add(sim_client& client) {
    clients_.push_back({&client, std::vector<link_record>(servers_.units(), {plan_.now(), {}})});
  }
  std::vector<client_record>& all() noexcept { return clients_; }
  client_record& of(const sim_client& client);
  /// The client that owns this field; null: none of the library's.
  client_record* owner_of(std::string_view field);

  /// Until `end` nothing is expected between this client, or all (null), and this machine, or all.
  void trouble(const sim_client* client, std::size_t machine, time_point end);
  void trouble(const sim_client* client, time_point end);
  /// After each instant.
  void look();

  /// From when on a client does everything without delay, as far as faults are concerned: at this node, and at each.
  time_point undisturbed_from(const sim_client& client, std::size_t node);
  time_point undisturbed_from(const sim_client& client);

 private:
  static void extend_trouble(const client_record&, link_record&, time_point now, time_point end);

  scheduler& plan_;
  deployment& servers_;
  std::vector<client_record> clients_;
};

}  // namespace holdfast::sim
