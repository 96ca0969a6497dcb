// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/waiter_judge.hpp"

#include <algorithm>

namespace holdfast::sim {

void waiter_judge::refused_for_good(const std::string& name, const std::string& field) {
  for (auto& [id, call] : known_.calls.all())
    if (call.waits_for.size() > 1 && !call.wants_all && field.starts_with(call.client->uuid()))
      std::erase(call.waits_for, name);
}

bool waiter_judge::is_free(std::size_t node, const std::string& name) {
  if (exclusion_.is_claimed(name)) return false;
  const auto* e = known_.stored.find(node, name);
  if (!e || !known_.stored.votes()) return !e;
  bool held = false;
  each_owner(name, *e, [&](const std::string& field) { held |= !gives_back(node, name, field); });
  return !held;
}

// A field stays for its TTL if nobody could give it back, or if a stopped node took it after its client had given up.
// The residue_judge decides whether it may stay.
bool waiter_judge::gives_back(std::size_t node, const std::string& name, const std::string& field) {
  const auto* owner = known_.clients.owner_of(field);
  const auto& record = known_.fields.at(node, field);
  if (!owner || record.met_replica || record.unfenced || record.replaced) return false;
  const auto& client = *owner->client;
  return known_.now() > known_.clients.undisturbed_from(client, node) &&
         known_.now() < record.first_seen + bounds::undisturbed(client.settings()) &&
         known_.calls.any([&](const auto& call) { return call.client == &client && call.waits_for_lock(name); });
}

bool waiter_judge::is_free(const std::string& name) {
  std::size_t free = 0;
  for (std::size_t node = 0; node < nodes_.size(); ++node) free += is_free(node, name);
  return free >= known_.stored.majority();
}

// A move of a slot, too, frees a lock without a message.
time_point waiter_judge::last_silence_about(const std::string& name, const sim_client& client) {
  if (known_.servers.moves(name)) known_.excused.freed_silently(name);
  const auto& record = known_.clients.of(client);
  const auto silence = known_.excused.last_silence_about(name);
  // A push that has reached the client ends the silence.
  const auto pushed = record.pushed.find(name);
  const bool told = pushed != record.pushed.end() && pushed->second >= silence;
  return std::max(told ? pushed->second - bounds::longest_sleep(client.settings()) : silence, record.last_message_lost);
}

// A caller that wants several has the turn of its client at the earlier names while it waits for a later one, and
// another caller may have the turn there. A name that became free in silence is waited for until the poll.
void waiter_judge::note_kept_names() {
  // A script that needs a second key waits while the slot moves, and a caller that wants several asks one slot after
  // the other.
  for (const auto& [id, call] : known_.calls.all())
    if (call.waits_for.size() > 1 && std::any_of(call.waits_for.begin(), call.waits_for.end(),
                                                 [&](const auto& name) { return known_.servers.moves(name); }))
      for (const auto& name : call.waits_for)
        kept_at_[{call.client, name}] = known_.now() + bounds::longest_redirect_pause;
  decltype(kept_) kept;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [id, call] : known_.calls.all()) {
      if (!call.wants_all) continue;
      const auto& settings = call.client->settings();
      const auto waits = [&](const std::string& name) {
        const auto silence = last_silence_about(name, *call.client);
        const bool found = known_.now() > silence + bounds::longest_sleep(settings) + bounds::late_by_clock(settings);
        return !is_free(name) || !found || kept.contains({call.client, name});
      };
      if (std::none_of(call.waits_for.begin(), call.waits_for.end(), waits)) continue;
      for (const auto& name : call.waits_for) more |= kept.emplace(call.client, name).second;
    }
  }
  for (const auto* all : {&kept_, &kept})  // a name that was kept until now, too
    for (const auto& each : *all) kept_at_[each] = known_.now();
  kept_ = std::move(kept);
}

// A semaphore, a shared mutex and a fair mutex have judges of their own.
bool waiter_judge::judged_elsewhere(const std::string& name) const {
  return known_.stored.semaphore_of(name) || known_.stored.shared_of(name) || known_.stored.fair_of(name);
}

void waiter_judge::note_free_names() {
  for (const auto& [id, call] : known_.calls.all())
    for (const auto& name : call.waits_for)
      for (std::size_t node = 0; node < nodes_.size() && !judged_elsewhere(name); ++node) {
        auto& since = nodes_[node].free_since[name];
        if (!is_free(node, name) || known_.servers.moves(name))
          since.reset();
        else if (!since)
          since = known_.now();
      }
}

void waiter_judge::look() {
  note_kept_names();
  note_free_names();
  const auto allowed = bounds::wake_up + bounds::journey + (known_.stored.votes() ? bounds::contest : nanoseconds());
  for (const auto& [id, call] : known_.calls.all())
    for (const auto& name : call.waits_for) {
      if (call.client->closing()) continue;
      const auto& settings = call.client->settings();
      const auto from = std::max({could_be_granted_since(call, name),
                                  last_silence_about(name, *call.client) + bounds::longest_sleep(settings),
                                  kept_at_[{call.client, name}]});
      if (known_.now() - allowed > from + bounds::late_by_clock(settings))
        known_.accuse(*call.client, "waits for " + name + ", which is free: " + call.text);
    }
}

// A node that has lost its vote has it again when a client has asked, has waited for the longest TTL, and asks again.
time_point waiter_judge::could_be_granted_since(const call_record& call, const std::string& name) {
  std::vector<time_point> each;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const auto& node = nodes_[n];
    const auto free = node.free_since.find(name);
    if (free == node.free_since.end() || !free->second) continue;
    const auto from = std::max({*free->second, known_.clients.undisturbed_from(*call.client, n), call.since});
    const auto vote = nanoseconds(call.client->settings().red_lock.longest_ttl) * 2 + 3 * bounds::retry;
    const bool waits = known_.stored.votes() && node.vote_lost;
    each.push_back(waits ? std::max(from, *node.vote_lost) + vote : from);
  }
  constexpr auto never = time_point::max() - std::chrono::hours(1);
  return known_.stored.majority_since(std::move(each)).value_or(never);
}

}  // namespace holdfast::sim
