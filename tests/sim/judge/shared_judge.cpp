// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/shared_judge.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

// A reader gives a lock that has lost its TTL a TTL of its own, which may be too short for other readers.
void shared_judge::excuse_endless() {
  for (const auto& of : known_.stored.shared()) {
    const auto* lock = known_.stored.find(0, of.name);
    if (lock && !lock->expires) known_.excused.add(of.name, false);
  }
}

void shared_judge::granted(const detail::lease_record& lease) {
  if (!quiet_) return;
  auto& past = past_sections_[lease.of->keys()->name];
  const bool nested = std::ranges::any_of(
      past, [&](const auto& each) { return !each.over && each.hold == lease.of && each.owner == lease.owner; });
  const auto now = known_.now();
  if (!nested) past.push_back({lease.of, lease.owner, lease.of->keys()->of.bars, now, now});
}

// A section has lasted until the instant in which it is first seen to be over.
void shared_judge::note_sections() {
  const auto now = known_.now();
  for (auto& [name, past] : past_sections_) {
    for (auto& each : past) {
      if (each.over) continue;
      each.seen = now;
      each.over = !each.hold->exclusive() || each.hold->count_of(each.owner) == 0;
    }
    std::erase_if(past, [&](const auto& each) { return each.seen < now - bounds::remembered; });
  }
}

// A value of another type, or a hash without a mode, is put there by a fault.
bool shared_judge::read_state(const shared_names& of, state& found) const {
  if (known_.servers.moves(of.name)) return false;
  if (const auto* lock = known_.stored.find(0, of.name)) {
    const auto* mode = lock->hash() ? lock->hash()->find("mode") : nullptr;
    if (!mode || !lock->expires) return false;
    found.read = *mode == "read";
    found.written = !found.read;
    known_.stored.each_owner(
        known_.stored.holder(0, of.name), of.name, *lock,
        [&](const auto&, const auto&, time_point end) { found.readers_live |= found.read && end > known_.now(); });
  }
  if (const auto* turn = known_.stored.find(0, of.turn)) found.turn = turn->text();
  const auto* queue = known_.stored.find(0, of.queue);
  if (queue && queue->sorted())
    found.door =
        std::ranges::any_of(queue->sorted()->members(), [&](const auto& each) { return keeps_door(each.second, of); });
  return true;
}

// A client that has left keeps its place until it has its connections back. Its place ends by the next look of a reader
// if it is closed.
bool shared_judge::keeps_door(const std::string& client, const shared_names& of) const {
  const auto* const known = known_.clients.owner_of(client);
  if (!known || known_.now() <= known_.clients.undisturbed_from(*known->client)) return true;
  return known_.calls.any(
      [&](const auto& call) { return call.client == known->client && call.writes && call.waits_for_lock(of.name); });
}

bool shared_judge::admits(const state& at_node, const call_record& call) {
  const auto* turn = at_node.turn;
  if (call.writes) return !at_node.readers_live && !at_node.written && (!turn || *turn == call.client->uuid());
  return !at_node.written && !at_node.door && (at_node.read || !turn || *turn == "r");
}

void shared_judge::look() {
  if (quiet_) look_at_deadlines();
  auto before = std::exchange(first_, {});
  std::set<std::pair<const sim_client*, const shared_names*>> lines;
  for (const auto& [id, call] : known_.calls.all()) {
    const auto* of = call.waits_for.size() == 1 ? known_.stored.shared_of(call.waits_for.front()) : nullptr;
    if (!of || call.client->closing() || !lines.emplace(call.client, of).second) continue;
    const auto found = before.find(id);
    auto& first = first_[id] =
        found != before.end() ? std::move(found->second) : waiter{&call, of, known_.now(), known_.now()};
    look_at(first);
  }
}

// Where no fault strikes, a deadline goes with its reader.
void shared_judge::look_at_deadlines() const {
  for (const auto& of : known_.stored.shared()) {
    const auto& keys = known_.stored.holder(0, of.name).program().keys();
    const auto* lock = keys.find(of.name);
    for (const auto& [key, e] : keys.all())
      if (of.is_deadline(key) && keys.find(key) && !stored(lock, of.reader_of(key)))
        known_.found.accuse("the node", "keeps the deadline of a reader that has left: " + key);
  }
}

void shared_judge::look_at(waiter& first) {
  const auto& call = *first.call;
  const auto now = known_.now();
  state at_node;
  // A client that believes to write asks nobody. A hold that was broken is found out by its next renewal, or by its
  // unlock. Until this look it has barred the line.
  const bool own = writes(*call.client, *first.of);
  const bool barred = std::exchange(first.barred, own);
  if (!read_state(*first.of, at_node) || own || barred || !admits(at_node, call)) first.admitted_since = now;
  const auto& settings = call.client->settings();
  const auto silence =
      std::max(known_.excused.last_silence_about(first.of->name), known_.clients.of(*call.client).last_message_lost);
  const auto from =
      std::max({first.admitted_since, known_.clients.undisturbed_from(*call.client), silence}) + bounds::look;
  if (now > from + bounds::wake_up + bounds::journey + bounds::late_by_clock(settings))
    known_.accuse(*call.client, "waits for " + first.of->name + ", which admits it: " + call.text);
  if (!quiet_) return;
  if (barred || now < quiet_from_) {
    first = {first.call, first.of, now, first.admitted_since};
    first.barred = own;
  }
  if (now <= first.since + bounds::hand_over) note_others(first, at_node);
  judge_bound(first);
}

bool shared_judge::writes(const sim_client& client, const shared_names& of) const {
  return known_.holds.any([&](const auto& each) {
    return each.client == &client && each.name() == of.name && each.hold->keys()->of.bars && each.hold->exclusive();
  });
}

// A client that comes while readers read, or are about to, waits for them if a writer does.
void shared_judge::note_others(waiter& first, const state& at_node) const {
  first.reads_before |= at_node.read || (at_node.turn && *at_node.turn == "r");
  for (const auto& each : known_.clients.all()) {
    const bool waits = known_.calls.any([&](const auto& call) {
      return call.client == each.client && call.writes && call.waits_for_lock(first.of->name);
    });
    if (each.client != first.call->client && (waits || writes(*each.client, *first.of)))
      first.writers_before.insert(each.client);
  }
}

void shared_judge::judge_bound(const waiter& first) const {
  const auto read = longest(*first.of, false, first.since), written = longest(*first.of, true, first.since);
  const auto readers = bounds::joining + read + bounds::hand_over;
  const auto writers = bounds::stint + written + bounds::hand_over;
  const auto turns = static_cast<std::int64_t>(first.writers_before.size());
  known_.met.hit(first.call->writes ? "bound of a wait: writer" : "bound of a wait: reader");
  const auto limit = first.call->writes ? readers + turns * (writers + read + bounds::hand_over)
                                        : writers + (first.reads_before ? readers : nanoseconds());
  if (known_.now() > first.since + limit)
    known_.accuse(*first.call->client, "waits longer than others of " + first.of->name + " allow: " + first.call->text);
}

/// The longest section of those that were there since then.
nanoseconds shared_judge::longest(const shared_names& of, bool writes, time_point since) const {
  nanoseconds most{};
  const auto all = past_sections_.find(of.name);
  if (all == past_sections_.end()) return most;
  for (const auto& each : all->second)
    if (each.writes == writes && each.seen >= since) most = std::max<nanoseconds>(most, each.seen - each.began);
  return most;
}

}  // namespace holdfast::sim
