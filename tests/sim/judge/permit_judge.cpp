// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/permit_judge.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::sim {
namespace {

const sorted_set no_permits;

/// The permits that are out, also those that have ended; null: a value of another type is there.
const sorted_set* out_of(const keyspace::entry* e) { return e ? e->sorted() : &no_permits; }

/// The permits that are left, by the counter; nothing: it is no number.
std::optional<long long> left_of(const keyspace::entry* counter) {
  long long left = 0;
  const bool number = counter->text() && to_integer(*counter->text(), left);
  return number ? std::optional(left) : std::nullopt;
}

}  // namespace

void permit_judge::ran(std::size_t machine) {
  if (known_.servers.what() == detail::deployment::cluster) return;
  const auto& keys = known_.servers.machines()[machine].program().keys();
  for (const auto& each : known_.stored.semaphores()) {
    const auto* counter = keys.find(each.name);
    const auto* out = out_of(keys.find(each.permits));
    const auto left = counter && out ? left_of(counter) : std::nullopt;
    if (left && *left + static_cast<long long>(out->members().size()) != each.total)
      known_.found.accuse("the node", "has " + std::to_string(*left) + " permits of " + each.name + ", and " +
                                          std::to_string(out->members().size()) + " are out: there are " +
                                          std::to_string(each.total));
  }
}

void permit_judge::granted(std::size_t machine, const std::string& name, const std::vector<std::string>& ids) {
  const auto& first = ids.front();
  const bool is_new = std::ranges::any_of(ids, [&](const auto& id) { return !granted_.contains(id); });
  granted_.insert(ids.begin(), ids.end());
  if (!is_new) return;
  const auto* of = known_.stored.semaphore_of(name);
  const auto* door = known_.servers.machines()[machine].program().keys().find(of->door);
  if (door && door->text() && *door->text() != first)
    known_.found.accuse("the node", "grants permits of " + name + " though a waiter has closed the door");
  const auto* winner = known_.clients.owner_of(first)->client;
  visit_first_waiters([&](std::uint64_t call, const call_record& waiter, const semaphore& at) {
    if (&at == of && waiter.amount > 1 && waiter.client != winner) passed_over_since_.emplace(call, known_.now());
  });
}

// A permit ends by the clock of the server that has it, and the server that a slot moves to may be ahead. A script
// needs all keys of a semaphore, so it has to wait meanwhile.
void permit_judge::excuse_moves() {
  for (const auto& each : known_.stored.semaphores())
    if (known_.servers.moves(each.name)) known_.excused.add(each.name, false);
}

template <class Use>
void permit_judge::visit_first_waiters(Use use) {
  std::set<std::pair<const sim_client*, const semaphore*>> lines;
  for (const auto& [id, call] : known_.calls.all()) {
    const auto* of = call.waits_for.size() == 1 ? known_.stored.semaphore_of(call.waits_for.front()) : nullptr;
    if (of && lines.emplace(call.client, of).second && !call.client->closing()) use(id, call, *of);
  }
}

void permit_judge::look() {
  const auto owed = std::exchange(owed_since_, {}), passed_over = std::exchange(passed_over_since_, {});
  visit_first_waiters([&](std::uint64_t id, const call_record& call, const semaphore& of) {
    const auto at_node = state_of(of);
    if (!at_node) return;
    const auto* keeper = at_node->door ? known_.clients.owner_of(*at_node->door) : nullptr;
    const bool shut = at_node->door && (!keeper || keeper->client != call.client);
    const auto before = passed_over.find(id);
    if (at_node->left >= call.amount) {
      if (shut) return;
      const auto found = owed.find(id);
      const auto since = owed_since_.emplace(id, found == owed.end() ? known_.now() : found->second).first->second;
      if (is_late(call, of, since, bounds::wake_up))
        known_.accuse(*call.client, "waits for permits of " + of.name + ", which are left: " + call.text);
    } else if (!at_node->door && before != passed_over.end()) {
      passed_over_since_.insert(*before);
      if (is_late(call, of, before->second, bounds::door))
        known_.accuse(*call.client, "waits for permits of " + of.name + ", and closes no door: " + call.text);
    }
  });
}

// A waiter that has no message finds it by its poll.
bool permit_judge::is_late(const call_record& call, const semaphore& of, time_point since, nanoseconds allowed) {
  const auto& settings = call.client->settings();
  const auto silence =
      std::max(known_.excused.last_silence_about(of.name), known_.clients.of(*call.client).last_message_lost);
  const auto from =
      std::max({since, known_.clients.undisturbed_from(*call.client), silence + bounds::longest_sleep(settings)});
  return known_.now() > from + allowed + bounds::journey + bounds::late_by_clock(settings);
}

// A permit that its waiter has got closes no door.
std::optional<permit_judge::state> permit_judge::state_of(const semaphore& of) const {
  const auto* out = out_of(known_.stored.find(0, of.permits));
  const auto* counter = known_.stored.find(0, of.name);
  const auto* door = known_.stored.find(0, of.door);
  if (!out || known_.servers.moves(of.name)) return std::nullopt;
  const auto size = static_cast<long long>(out->members().size());
  const auto left = counter ? left_of(counter) : std::optional(of.total - size);
  if (!left) return std::nullopt;
  auto& at = known_.stored.holder(0, of.permits);
  const auto ended = std::count_if(out->members().begin(), out->members().end(),
                                   [&](const auto& each) { return storage::end_of(at, each.first) <= known_.now(); });
  const bool closed = door && door->text() && !out->score_of(*door->text());
  return state{*left + ended, closed ? door->text() : nullptr};
}

}  // namespace holdfast::sim
