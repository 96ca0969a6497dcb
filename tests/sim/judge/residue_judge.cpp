// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/residue_judge.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/escape.hpp"

namespace holdfast::sim {

// A command for places names its client, and then their numbers.
void residue_judge::ran_unfenced(std::size_t machine, const arguments& command) {
  const auto node = known_.servers.unit_of(machine);
  const auto queues = std::ranges::find_if(command, [&](const auto& word) { return known_.stored.fair_of(word); });
  for (auto word = command.begin(); word != command.end(); ++word) {
    if (!known_.clients.owner_of(*word)) continue;
    known_.fields.at(node, *word).unfenced = true;
    for (auto number = word + 1; queues != command.end() && number != command.end(); ++number)
      known_.fields.at(node, storage::place_of(*word + ':' + *number, known_.stored.fair_of(*queues)->queue)).unfenced =
          true;
  }
}

// A key that is over counts, too: it may come back.
void residue_judge::clock_stepped_back(std::size_t machine, nanoseconds by) {
  if (known_.servers.is_sentinel(machine)) return;
  const auto node = known_.servers.unit_of(machine);
  auto& at = known_.servers.machines()[machine];
  for (const auto& [key, e] : at.program().keys().all())
    known_.stored.each_trace(at, key, e, [&](const auto&, const std::string& field, time_point) {
      known_.fields.at(node, field).stepped_back += by;
    });
}

void residue_judge::look() {
  note_awake_clients();
  visit_fields();
}

void residue_judge::note_awake_clients() {
  for (const auto& each : known_.clients.all()) {
    const sim_client* client = each.client;
    const bool waits = known_.calls.any([&](const auto& call) { return call.client == client; });
    const bool holds =
        known_.holds.any([&](const auto& record) { return record.client == client && record.hold->exclusive(); });
    if (waits || holds)
      awake_since_.emplace(client, known_.now());
    else
      awake_since_.erase(client);
  }
}

bool residue_judge::is_held(const std::string& field) const {
  return known_.holds.any(
      [&](const auto& each) { return each.has(field) && (each.hold->exclusive() || known_.delayed(each)); });
}

// A call may have permits that it does not know of yet, but no more than it asks for. The newest ones are its own.
void residue_judge::note_unasked_permits() {
  unasked_.clear();
  if (known_.stored.semaphores().empty()) return;
  using line = std::pair<const sim_client*, const semaphore*>;
  std::map<line, std::set<std::pair<time_point, std::string>, std::greater<>>> strays;
  for (std::size_t node = 0; node < known_.stored.nodes(); ++node)
    known_.stored.each_trace(node, [&](const std::string& key, const std::string& field, time_point) {
      const auto* of = known_.stored.semaphore_of(key);
      const auto* owner = of ? known_.clients.owner_of(field) : nullptr;
      if (owner && !is_held(field))
        strays[{owner->client, of}].emplace(known_.fields.at(node, field).first_seen, field);
    });
  for (const auto& [of, fields] : strays) {
    std::vector<std::pair<time_point, unsigned>> calls;
    for (const auto& [id, call] : known_.calls.all())
      if (call.client == of.first && (call.tries == of.second->name || call.waits_for_lock(of.second->name)))
        calls.emplace_back(call.since, call.amount);
    std::sort(calls.begin(), calls.end(), std::greater<>());
    for (const auto& [seen, field] : fields) {
      const auto asks = std::find_if(calls.begin(), calls.end(),
                                     [&](const auto& call) { return call.first <= seen && call.second > 0; });
      if (asks == calls.end())
        unasked_.insert(field);
      else
        --asks->second;
    }
  }
}

// A caller that waits has one place.
bool residue_judge::has_needless_places(std::size_t node, const fair_names& of, const sim_client& client) const {
  const auto* queue = known_.stored.find(node, of.queue);
  const auto places = std::ranges::count_if(*queue->list(), [&](const auto& place) { return client.owns(place); });
  const auto waiters = std::ranges::count_if(known_.calls.all(), [&](const auto& each) {
    return each.second.client == &client && each.second.waits_for_lock(of.name);
  });
  return places > waiters;
}

void residue_judge::visit_fields() {
  note_unasked_permits();
  known_.fields.visit_stored(
      known_.stored, [&](std::size_t node, const std::string& key, const std::string& field, field_record& record,
                         time_point end) { look_at(node, key, field, record, end); });
}

// A stopped server may run a command from its socket after its client has given up to undo it, one TTL later. No field
// stays for longer than the outage lasted.
void residue_judge::look_at(std::size_t node, const std::string& key, const std::string& field, field_record& record,
                            time_point end) {
  const auto now = known_.now();
  const auto* owner = known_.clients.owner_of(field);
  if (!owner || (owner->client->closing() && !owner->closed_in_peace)) return;
  const auto& client = *owner->client;
  const auto& link = owner->links[node];
  if (now <= link.clear_since + bounds::reconnection(client.settings()))
    record.outage = std::max(record.outage, link.clear_since - link.trouble_began);
  const bool held = is_held(field);
  const auto* shared = known_.stored.shared_of(key);
  const auto* fair = known_.stored.fair_of(key);
  const bool is_place = (shared || fair) && field.find(storage::place) != field.npos;
  const bool to_write = is_place && shared && field.ends_with(shared->queue);
  const bool asked = !unasked_.contains(field) && known_.calls.any([&](const auto& call) {
    if (call.client != &client) return false;
    if (is_place && fair) return call.waits_for_lock(key) && !has_needless_places(node, *fair, client);
    if (is_place) return call.waits_for_lock(key) && call.writes == to_write;
    return (call.tries == key || call.waits_for_lock(key)) && call.since <= record.first_seen;
  });
  record.met_replica |= known_.stored.holder(node, key).program().is_replica();
  // The release of a permit, of a reader or of a writer needs several keys, and is sent again until its slot has moved.
  const bool several_keys = shared || fair || known_.stored.semaphore_of(key);
  if (held || asked || (several_keys && known_.servers.moves(key))) return record.unwanted_since.reset();
  if (!record.unwanted_since) record.unwanted_since = now;
  const auto due = std::max(*record.unwanted_since, known_.clients.undisturbed_from(client, node)) + bounds::journey +
                   (several_keys ? bounds::longest_redirect_pause : nanoseconds());
  const bool overdue = owner->closed_in_peace || now > due;
  // A client sends a release that a replaced server has answered again, once it knows the next server.
  const auto awake = awake_since_.find(&client);
  const bool repeated = known_.servers.what() == detail::deployment::sentinel && !client.closing() &&
                        awake != awake_since_.end() && now > std::max(due, awake->second) + bounds::followed;
  // A release is given up after its lease's TTL, and a place lasts longer. The acquire that a server has read late runs
  // in the moment in which its pause ends.
  const bool given_up = is_place && link.clear_since >= record.first_seen;
  const bool explained = record.unfenced || given_up || ((record.met_replica || record.replaced) && !repeated);
  // The owner of a key without a TTL will take it away.
  const auto left = end == time_point::max() ? nanoseconds() : end - now;
  if (left > record.outage + record.stepped_back && overdue && !explained)
    known_.accuse(client, "has left " + detail::escaped(field) + " in " + key);
}

// The places of a client that was closed in a trouble stay until the next caller drops them, as those of a peer that
// has died. So do those that a late command of a dead connection has brought back.
bool residue_judge::is_abandoned(std::string_view place) const {
  const auto* owner = known_.clients.owner_of(place);
  return !owner || (owner->client->closing() && !owner->closed_in_peace);
}

void residue_judge::look_for_survivors() {
  visit_fields();
  for (const auto& [place, record] : known_.fields.all())
    if (record.stepped_back == nanoseconds::zero() &&
        !(place.second.find(storage::place) != place.second.npos && (record.unfenced || is_abandoned(place.second))))
      known_.found.accuse("the node", "still keeps " + detail::escaped(place.second));
}

// The places of peers end later. So do those of ours that a server that was replaced has passed on.
bool residue_judge::has_only_strangers(const std::string& key, const keyspace::entry& e) const {
  const auto* of = known_.stored.fair_of(key);
  if (!of || key == of->name) return false;
  const auto is_ours = [&](const std::string& place) {
    const auto record = known_.fields.all().find({0, storage::place_of(place, of->queue)});
    const bool unfenced = record != known_.fields.all().end() && record->second.unfenced;
    return !unfenced && !is_abandoned(place);
  };
  const bool ours = (e.list() && std::ranges::any_of(*e.list(), is_ours)) ||
                    (e.sorted() && std::ranges::any_of(e.sorted()->members(),
                                                       [&](const auto& member) { return is_ours(member.second); }));
  return !ours || known_.servers.fails_over();
}

void residue_judge::look_at_the_end() {
  for (std::size_t m = 0; m < known_.servers.machines().size(); ++m) {
    if (known_.servers.is_sentinel(m)) continue;  // clients listen on
    auto& machine = known_.servers.machines()[m];
    const auto& keys = machine.program().keys();
    for (const auto& [key, e] : keys.all()) {
      if (is_side_key(key) || !keys.find(key)) continue;
      if (has_only_strangers(key, e)) continue;
      const auto* of = known_.stored.semaphore_of(key);
      bool over = of && key != of->door;  // each permit
      known_.stored.each_owner(machine, key, e,
                               [&](const auto&, const auto&, time_point end) { over &= end <= known_.now(); });
      if (!over) known_.found.accuse("the node", "keeps " + key);
    }
    if (machine.program().subscriptions() != 0) known_.found.accuse("somebody", "has left a subscription");
  }
}

}  // namespace holdfast::sim
