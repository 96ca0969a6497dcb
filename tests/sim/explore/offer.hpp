// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "sim/deployment.hpp"
#include "sim/explore/search.hpp"
#include "sim/sim_client.hpp"

namespace holdfast::sim::explore {

using client_list = std::vector<std::unique_ptr<sim_client>>;

/// Something that can happen, and the way to let it.
struct offer {
  explore::option option;
  std::function<void()> take;
};

// The objects of a small world: each client with all that it has; each machine's data; whether a machine runs; the
// machine's end of the connections of a client.
constexpr std::size_t most_machines = 8;
constexpr std::size_t first_bit_of_machines = 8, first_bit_of_powers = 16, first_bit_of_ends = 24;

constexpr objects object_of_client(std::size_t client) { return objects(1) << client; }
constexpr objects object_of_machine(std::size_t machine) { return objects(1) << (first_bit_of_machines + machine); }
constexpr objects power_of_machine(std::size_t machine) { return objects(1) << (first_bit_of_powers + machine); }
constexpr objects end_at_machine(std::size_t client, std::size_t machine) {
  return objects(1) << (first_bit_of_ends + most_machines * client + machine);
}

/// The option that the first event of a flow happens.
inline option arrival(const scheduler::first_of_flow& first, deployment& servers, const client_list& clients) {
  option made{.label = first.on->name};
  for (std::size_t n = 0; n < clients.size(); ++n)
    for (std::size_t m = 0; m < servers.machines().size(); ++m) {
      const auto& way = clients[n]->ways()[m];
      if (first.on->to == &way) made.changes = object_of_client(n);
      if (first.on->from != &way) continue;
      made.changes = end_at_machine(n, m) | (first.private_to_ends ? objects(0) : object_of_machine(m));
      made.reads = power_of_machine(m);
    }
  for (std::size_t m = 0; m < servers.machines().size() && !first.on->from; ++m)
    if (first.on->to == &servers.machines()[m]) {
      made.changes = object_of_machine(m);
      made.reads = power_of_machine(m);
    }
  return made;
}

}  // namespace holdfast::sim::explore
