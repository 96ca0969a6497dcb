// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/fair_judge.hpp"

#include <algorithm>

namespace holdfast::sim {
namespace {

/// A client has so many at a lock.
constexpr std::ptrdiff_t most_places = 16;

}  // namespace

// A value of another type is put there by a fault.
bool fair_judge::read_state(const fair_names& of, state& found) const {
  if (known_.servers.moves(of.name)) return false;
  found.lock = known_.stored.find(0, of.name);
  const auto* queue = known_.stored.find(0, of.queue);
  if (queue) found.queue = queue->list();
  return !queue || found.queue;
}

bool fair_judge::holds(const sim_client& client, const fair_names& of) const {
  return known_.holds.any(
      [&](const auto& each) { return each.client == &client && each.name() == of.name && each.hold->exclusive(); });
}

// The answer of a grant is on its way.
bool fair_judge::has_unknown_field(const sim_client& client, const state& at_node) const {
  const auto* fields = at_node.lock ? at_node.lock->hash() : nullptr;
  return fields && std::ranges::any_of(fields->fields(), [&](const auto& each) {
           return client.owns(each.first) && !known_.holds.any([&](const auto& hold) { return hold.has(each.first); });
         });
}

// An owner that holds the lock re-enters it, and needs no place for that.
std::map<std::uint64_t, fair_judge::caller> fair_judge::callers_of(const fair_names& of) const {
  const auto before = callers_.find(of.name);
  std::map<std::uint64_t, caller> all;
  for (const auto& [id, call] : known_.calls.all()) {
    const bool waits = call.waits_for.size() == 1 && call.waits_for.front() == of.name;
    if (!waits && call.tries != of.name) continue;
    const bool known = before != callers_.end() && before->second.contains(id);
    auto alone_since = known ? before->second.at(id).alone_since : call.since;
    if (holds(*call.client, of)) alone_since = known_.now();
    all.emplace(id, caller{call.client, call.text, call.since, waits, alone_since});
  }
  return all;
}

void fair_judge::note_calls() {
  for (const auto& of : known_.stored.fair()) {
    auto now = callers_of(of);
    if (const auto served = served_.find(of.name); quiet_ && served != served_.end())
      judge_order(of, *served->second, now);
    callers_[of.name] = std::move(now);
  }
  served_.clear();
}

// The call that was served is one of those that are answered by now.
void fair_judge::judge_order(const fair_names& of, const sim_client& served,
                             const std::map<std::uint64_t, caller>& now) const {
  const caller* first = nullptr;
  for (const auto& [id, each] : callers_.at(of.name))
    if (each.client == &served && !now.contains(id) && (!first || each.since < first->since)) first = &each;
  if (!first) return;
  known_.met.hit("order: judged");
  for (const auto& [id, each] : now)
    if (each.waits && each.alone_since + bounds::journey < first->since)
      known_.accuse(*each.client, "waits for " + of.name + ", which one that came later has got: " + each.text);
}

void fair_judge::look() {
  for (const auto& of : known_.stored.fair()) {
    state at_node;
    if (!read_state(of, at_node)) {
      std::erase_if(short_since_, [&](const auto& each) { return each.first.second == &of; });
      free_head_.erase(of.name);
      free_since_.erase(of.name);
      continue;
    }
    look_at_places(of, at_node);
    look_at_head(of, at_node);
  }
}

// From when on a client knows what there is to know of a lock.
time_point fair_judge::heard_from(const sim_client& client, const fair_names& of) {
  const auto silence =
      std::max(known_.excused.last_silence_about(of.name), known_.clients.of(client).last_message_lost);
  return std::max(known_.clients.undisturbed_from(client), silence + bounds::longest_sleep(client.settings()));
}

// A caller that came a moment ago is on its way to its place.
void fair_judge::look_at_places(const fair_names& of, const state& at_node) {
  const auto now = known_.now();
  for (const auto& each : known_.clients.all()) {
    const auto& client = *each.client;
    const auto waiting = std::ranges::count_if(callers_[of.name], [&](const auto& one) {
      return one.second.client == &client && one.second.waits && one.second.alone_since + bounds::journey < now;
    });
    const auto places =
        at_node.queue ? std::ranges::count_if(*at_node.queue, [&](const auto& place) { return client.owns(place); })
                      : 0;
    const bool served = holds(client, of) || has_unknown_field(client, at_node);
    if (client.closing() || std::min(waiting, most_places) <= places + served) {
      short_since_.erase({&client, &of});
      continue;
    }
    const auto since = short_since_.try_emplace({&client, &of}, now).first->second;
    const auto allowed = quiet_ ? nanoseconds()
                                : bounds::longest_sleep(client.settings()) + bounds::wake_up + bounds::journey +
                                      bounds::late_by_clock(client.settings());
    if (now > std::max(since, heard_from(client, of)) + allowed)
      known_.accuse(client, "waits for " + of.name + " without a place");
  }
}

// A peer comes when it likes.
void fair_judge::look_at_head(const fair_names& of, const state& at_node) {
  const auto now = known_.now();
  const auto is_peer = [&](const std::string& place) { return !known_.clients.owner_of(place); };
  if (at_node.lock || !at_node.queue || std::ranges::any_of(*at_node.queue, is_peer)) {
    free_head_.erase(of.name);
    free_since_.erase(of.name);
    return;
  }
  auto& [head, head_since] = free_head_[of.name];
  if (head != at_node.queue->front()) head_since = now;
  head = at_node.queue->front();
  const auto free_since = free_since_.try_emplace(of.name, now).first->second;
  for (const auto& [id, call] : callers_[of.name]) {
    if (!call.waits || call.client->closing()) continue;
    const auto late = bounds::wake_up + bounds::journey + bounds::late_by_clock(call.client->settings());
    const auto skipping = bounds::longest_sleep(call.client->settings()) +
                          static_cast<std::int64_t>(known_.clients.all().size()) * bounds::skipped;
    const auto heard = heard_from(*call.client, of);
    const bool first = call.client->owns(head) && now > std::max({head_since, call.since, heard}) + late;
    if (first || now > std::max({free_since, call.since, heard}) + skipping + late)
      known_.accuse(*call.client, "waits for " + of.name + ", which is free: " + call.text);
  }
}

}  // namespace holdfast::sim
