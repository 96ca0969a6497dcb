// SPDX-License-Identifier: BSL-1.0
#include "sim/explore/strikes.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim::explore {
namespace {

/// In this time sentinels promote a replica.
constexpr std::chrono::milliseconds longest_promotion{300};

}  // namespace

void strikes::offer_faults(std::vector<offer>& to) {
  if (lasting_.undo) return;
  for (std::size_t n = 0; n < clients_.size(); ++n)
    for (std::size_t m = 0; m < servers_.machines().size(); ++m) offer_connections(to, n, m);
  for (std::size_t m = 0; m < servers_.machines().size(); ++m)
    if (!servers_.is_sentinel(m)) offer_machine(to, m);
  for (std::size_t n = 0; n < clients_.size() && has(client_pause); ++n)
    add(to, "pause client" + std::to_string(n), object_of_client(n), [this, n] { pause(n); });
  offer_delays(to);
  if (has(failover)) add(to, "fail over", all_objects, [this] { promote(); });
}

void strikes::add(std::vector<offer>& to, std::string label, objects changes, std::function<void()> strike) {
  to.push_back({{std::move(label), changes, option_kind::fault}, std::move(strike)});
}

void strikes::offer_connections(std::vector<offer>& to, std::size_t client, std::size_t machine) {
  for (const auto& each : clients_[client]->ways()[machine].wires()) {
    const auto in_trouble = [this, client, machine] { judge_.trouble(clients_[client].get(), machine, plan_.now()); };
    if (has(reply_lost))
      add(to, "cut " + each->name(), object_of_client(client), [this, each, in_trouble] {
        in_trouble();
        each->end_at_client();
        drop(each->down());
        each->end_at_server({});
      });
    if (has(command_lost) && plan_.holds(each->up()))
      add(to, "lose commands of " + each->name(),
          object_of_client(client) | object_of_machine(machine) | end_at_machine(client, machine),
          [this, each, in_trouble] {
            in_trouble();
            each->lose_up();
            drop(each->up());
            each->end_at_client();
            drop(each->down());
            each->end_at_server({});
          });
    if (has(connection_silent) && !each->loses())
      add(to, "silence " + each->name(), object_of_client(client), [this, each, in_trouble] {
        in_trouble();
        each->lose_down();
        drop(each->down());
      });
  }
}

void strikes::offer_machine(std::vector<offer>& to, std::size_t machine) {
  const auto name = "server" + std::to_string(machine);
  if (has(server_restart)) add(to, "shut down " + name, all_objects, [this, machine] { restart(machine, true); });
  if (has(server_loss))
    add(to, "shut down and empty " + name, all_objects, [this, machine] { restart(machine, false); });
  if (has(server_pause)) add(to, "stop " + name, power_of_machine(machine), [this, machine] { stop(machine); });
}

void strikes::offer_delays(std::vector<offer>& to) {
  if (plan_.held().empty()) return;
  if (has(late))
    add(to, "the timer comes first", all_objects, [this] {
      // The judges look inside the step.
      judge_.trouble(nullptr, plan_.next().value_or(plan_.now()));
      plan_.step();
    });
  if (has(very_late))
    add(to, "all is late", all_objects, [this] {
      judge_.trouble(nullptr, plan_.now() + beyond_ttl_);
      plan_.run_until(plan_.now() + beyond_ttl_);
    });
}

void strikes::offer_end(std::vector<offer>& to) {
  if (lasting_.undo) to.push_back({{lasting_.label, lasting_.changes, option_kind::step}, [this] { end(); }});
}

void strikes::begin(lasting fault) {
  lasting_ = std::move(fault);
  lasting_.since = plan_.now();
  lasting_.in_trouble();
}

void strikes::end() {
  const auto undo = std::exchange(lasting_.undo, nullptr);
  if (!undo) return;
  lasting_.in_trouble();
  undo();
}

void strikes::restart(std::size_t machine, bool keep_data) {
  auto& node = servers_.machines()[machine];
  node.shut_down();
  servers_.machine_lost(machine, false);
  for (const auto& client : clients_)
    for (const auto& each : client->ways()[machine].wires()) drop(each->up());
  if (!keep_data && !servers_.fails_over()) judge_.data_lost(machine);
  begin({.label = "start server" + std::to_string(machine),
         .changes = all_objects,
         .in_trouble = [this, machine] { judge_.trouble(nullptr, machine, plan_.now()); },
         .undo =
             [this, &node, machine, keep_data] {
               node.start(keep_data);
               keep_data ? judge_.vote_lost(machine) : judge_.data_lost(machine);
               servers_.machine_is_back(machine);
             }});
}

void strikes::stop(std::size_t machine) {
  auto& node = servers_.machines()[machine];
  node.stop();
  servers_.look();
  begin({.label = "resume server" + std::to_string(machine),
         .changes = power_of_machine(machine) | object_of_machine(machine),
         .in_trouble = [this, machine] { judge_.trouble(nullptr, machine, plan_.now()); },
         .undo =
             [this, &node] {
               node.resume();
               servers_.look();
             }});
}

void strikes::pause(std::size_t client) {
  auto& paused = *clients_[client];
  paused.process().pause(true);
  begin({.label = "resume client" + std::to_string(client),
         .changes = object_of_client(client),
         .in_trouble = [this, &paused] { judge_.trouble(&paused, plan_.now()); },
         .undo = [&paused] { paused.process().pause(false); }});
}

// Events on their way happen after the promotion.
void strikes::promote() {
  servers_.fail_over();
  plan_.run_until(plan_.now() + longest_promotion);
  judge_.trouble(nullptr, plan_.now());
}

void strikes::drop(const flow& on) {
  while (plan_.holds(on)) plan_.let_in(on);
}

}  // namespace holdfast::sim::explore
