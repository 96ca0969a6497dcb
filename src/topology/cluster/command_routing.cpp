// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/command_routing.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/assert.hpp"

namespace holdfast::detail {

redis::ticket command_routing::execute(slot_number slot, redis::request asked) {
  const auto command = std::make_shared<routed_command>(static_cast<router&>(*this), services_.alarms, slot,
                                                        std::move(asked), services_.now());
  open_.add(command);
  const auto number = command->number;
  try {
    send(*command);
  } catch (...) {
    open_.remove(*command);
    throw;
  }
  return number;
}

void command_routing::send(routed_command& command) {
  command.resume = time_point::max();
  if (command.named) {
    const auto number = map_.number_of(*command.named);
    const auto* const named = nodes_.find(number);
    if (!named || !named->commands->is_down()) return send_to(number, *command.named, command);
    named->commands->try_again();
    return named_lost(command);
  }
  const auto owner = map_.owner(command.slot);
  if (owner != slot_map::nobody) return send_to(owner, map_.address_of(owner), command);
  owner_.ask_map();
  wait(command);
}

void command_routing::send_to(node_id number, const redis::address& at, routed_command& command) {
  auto& there = nodes_.enter(number, at);
  if (!std::exchange(there.in_use, true)) owner_.node_used(number, there);
  command.sent_as = there.commands->execute({open_.find(command.number), command.delivery_at(services_.now())});
  command.at = number;
  ++there.under_way;
  if (!std::exchange(sent_any_, true)) owner_.first_sent(there);
}

// The slot may never come to the named node. The owner of the slot names its target again.
void command_routing::named_lost(routed_command& command) {
  const auto node = introduction_.with(*command.named);
  command.refusal = redis::fail(node, errc::unreachable, "the slot was moving there, and it cannot be reached").detail;
  command.try_again.reset();
  command.resume = services_.now() + command.policy.on_named_lost().pause;
  command.named.reset();
  command.asking = false;
  wait(command);
}

void command_routing::node_lost(node_id lost) {
  const auto sent_there =
      open_.all([lost](const routed_command& each) { return each.named && each.at == lost && each.sent_as != 0; });
  for (const auto number : sent_there) {
    const auto command = open_.find(number);
    if (command && !command->unwanted && leaves_node(*command)) named_lost(*command);
  }
}

void command_routing::wait(routed_command& command) {
  command.pause.stop();
  const auto& delivery = command.asked.terms;
  const bool has_deadline = !delivery.waits_for_reply || (delivery.tell_late && !command.reported_late);
  const auto until = has_deadline ? std::min(command.resume, command.deadline) : command.resume;
  if (until == time_point::max()) return;
  command.pause.start(until, [this, number = command.number] {
    if (const auto waiting = open_.find(number)) waited(*waiting);
  });
}

void command_routing::waited(routed_command& command) {
  const auto now = services_.now();
  if (now >= command.deadline && !command.asked.terms.waits_for_reply) return give_up(command);
  if (now >= command.deadline && command.asked.terms.tell_late && !command.reported_late) {
    command.late(refused(command));
    if (command.number == 0 || command.at != slot_map::nobody) return;
  }
  if (now < command.resume) return wait(command);
  command.pause.stop();
  send(command);
}

void command_routing::heard(routed_command& command, const redis::outcome& outcome) {
  if (outcome.error || !outcome.reply.is_error()) return finish(command, outcome);
  const auto by = introduction_.with(nodes_.at(command.at).at);
  const auto next = command.policy.on_reply(outcome.reply, by.at, reach_, services_.now());
  using kind = redirects::step::kind;
  if (next.type == kind::deliver) return finish(command, outcome);
  command.ran_in_part |= ended_in_script(outcome.reply.text);
  command.refusal = redis::fail(by, errc::unreachable, redis::quoted(by, outcome.reply.text)).detail;
  command.try_again = next.type == kind::same_node ? std::make_unique<const redis::outcome>(outcome) : nullptr;
  if (command.unwanted) return give_up(command);
  left_node(command);
  command.resume = services_.now() + next.pause;
  if (next.type == kind::by_map) command.named.reset(), command.asking = false;
  if (next.type == kind::to_named) {
    command.named = next.to;
    command.asking = true;
    moving_to_[command.slot] = map_.number_of(next.to);
  }
  if (next.refresh) owner_.ask_map();
  if (next.moved) owner_.slot_moved(*next.moved);
  if (command.number == 0 || command.at != slot_map::nobody) return;  // it was withdrawn meanwhile
  waited(command);
}

void command_routing::left_node(routed_command& command) {
  const auto number = std::exchange(command.at, slot_map::nobody);
  if (number == slot_map::nobody) return;
  auto& left = nodes_.at(number);
  HOLDFAST_ASSERT(left.under_way > 0);
  --left.under_way;
}

void command_routing::finish(routed_command& command, const redis::outcome& outcome) {
  const auto asked = command.asked.command;
  const bool ran_in_part = command.ran_in_part;
  left_node(command);
  command.pause.stop();
  open_.remove(command);
  if (!ran_in_part) return asked->answered(outcome);
  auto known = outcome;
  known.ran_in_part = true;
  asked->answered(known);
}

redis::outcome command_routing::refused(const routed_command& command) const {
  if (!command.refusal.empty()) return {errc::unreachable, {}, command.refusal};
  const auto why = owner_.no_owner(command.slot);
  return {why.code, {}, why.detail};
}

void command_routing::give_up(routed_command& command) {
  finish(command, command.try_again ? redis::outcome(*command.try_again) : refused(command));
}

bool command_routing::withdraw(redis::ticket number) {
  const auto command = open_.find(number);
  if (!command) return false;
  if (!leaves_node(*command)) {
    command->unwanted = true;
    return false;
  }
  command->pause.stop();
  open_.remove(*command);
  return true;
}

// True: the command is at no node any more, and was not written.
bool command_routing::leaves_node(routed_command& command) {
  if (command.at == slot_map::nobody) return true;
  if (!nodes_.at(command.at).commands->withdraw(command.sent_as)) return false;
  left_node(command);
  return true;
}

void command_routing::answer_homeless(const redis::failure& why) {
  for (const auto number : open_.all(waits_for_an_owner)) {
    const auto command = open_.find(number);
    if (command) finish(*command, {why.code, {}, why.detail});
  }
}

void command_routing::map_changed() {
  const auto misplaced = open_.all([this](const routed_command& each) {
    const auto owner = map_.owner(each.slot);
    if (each.at == slot_map::nobody) return waits_for_an_owner(each) && owner != slot_map::nobody;
    return !each.named && each.at != owner && each.sent_as != 0;  // 0: it was refused, and is about to be answered
  });
  for (const auto number : misplaced) {
    const auto command = open_.find(number);
    if (!command || command->unwanted || !leaves_node(*command)) continue;
    command->resume = services_.now();
    waited(*command);
  }
}

std::optional<node_id> command_routing::moving_to(slot_number slot) const {
  const auto found = moving_to_.find(slot);
  return found != moving_to_.end() ? std::optional(found->second) : std::nullopt;
}

}  // namespace holdfast::detail
