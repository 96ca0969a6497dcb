// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/client_book.hpp"

#include <algorithm>

namespace holdfast::sim {

client_record& client_book::of(const sim_client& client) {
  return *std::find_if(clients_.begin(), clients_.end(), [&](const auto& each) { return each.client == &client; });
}

client_record* client_book::owner_of(std::string_view field) {
  const auto found =
      std::find_if(clients_.begin(), clients_.end(), [&](const auto& each) { return each.client->owns(field); });
  return found == clients_.end() ? nullptr : &*found;
}

void client_book::trouble(const sim_client* client, std::size_t machine, time_point end) {
  for (auto& each : clients_)
    if (!client || each.client == client) extend_trouble(each, each.links[servers_.unit_of(machine)], plan_.now(), end);
}

void client_book::trouble(const sim_client* client, time_point end) {
  for (std::size_t m = 0; m < servers_.machines().size(); ++m) trouble(client, m, end);
}

void client_book::look() {
  const bool settled = servers_.settled();
  for (auto& each : clients_)
    for (std::size_t m = 0; m < servers_.machines().size(); ++m)
      if (!settled || each.client->ways()[m].troubled() || each.client->process().paused())
        extend_trouble(each, each.links[servers_.unit_of(m)], plan_.now(), plan_.now());
}

time_point client_book::undisturbed_from(const sim_client& client, std::size_t node) {
  return of(client).links[node].clear_since + bounds::undisturbed(client.settings());
}

time_point client_book::undisturbed_from(const sim_client& client) {
  time_point from{};
  for (std::size_t node = 0; node < servers_.units(); ++node) from = std::max(from, undisturbed_from(client, node));
  return from;
}

void client_book::extend_trouble(const client_record& of, link_record& link, time_point now, time_point end) {
  if (link.clear_since + bounds::reconnection(of.client->settings()) < now) link.trouble_began = now;
  link.clear_since = std::max(link.clear_since, end);
}

}  // namespace holdfast::sim
