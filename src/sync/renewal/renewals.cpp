// SPDX-License-Identifier: BSL-1.0
#include "sync/renewal/renewals.hpp"

#include <algorithm>
#include <utility>

#include "base/if_memory.hpp"
#include "base/prefetch.hpp"
#include "protocol/kind.hpp"
#include "sync/claim/terms.hpp"

namespace holdfast::detail {

void renewals::leave_queue(share& part) {
  auto& waiting = queues_.at(part.node).due;
  waiting.erase(waiting.iterator_to(part));
  part.stage = renewal_stage::none;
}

void renewals::confirm_by(share& part, time_point by) {
  // The answer may have been given before the doubt. land() then asks for one more renewal.
  if (in_flight(part)) {
    part.renewal = by;
    part.stage = renewal_stage::doubted_in_flight;
  } else if (part.stage == renewal_stage::none || (part.stage == renewal_stage::scheduled && part.renewal > by)) {
    schedule(part, by);
  }
}

bool renewals::land(share& part) noexcept {
  HOLDFAST_ASSERT(in_flight(part));
  return std::exchange(part.stage, renewal_stage::none) == renewal_stage::doubted_in_flight;
}

void renewals::put_off(share& part, time_point now) noexcept {
  if (!in_flight(part)) return;
  land(part);
  if (guarded(part.of)) schedule(part, now + renewal_retry_pause(part.of.wanted.ttl));
}

void renewals::put_off(const shares& parts, time_point now) noexcept {
  for (const auto& part : parts) put_off(*part, now);
}

void renewals::collect(time_point now) {
  for (std::size_t n = 0; n < collected_at_once; ++n) {
    auto* const part = scheduled_.first_until(now);
    if (!part) return;
    // The node is looked up now, not when the share was scheduled: a slot may have moved since.
    const auto home = home_of(*part);
    auto& waiting = queues_[home].due;
    unschedule(*part);
    part->stage = renewal_stage::due;
    part->renewal = part->valid_until();
    part->node = home;
    waiting.insert(*part);
  }
}

std::optional<node_id> renewals::ready() const noexcept {
  for (const auto& [node, each] : queues_)
    // A server whose link is down would only fill the queue, and its renewals would time out there.
    if (each.up && each.unanswered < most_unanswered && !each.due.empty()) return node;
  return std::nullopt;
}

// A renewal that is due soon goes along. Then ten thousand leases that were taken one after the other share a hundred
// commands. A claim that is about to end goes alone, because its short timeout would be that of the others.
renewals::shares renewals::take(node_id node, time_point now) {
  auto& waiting = queues_[node].due;
  shares due;
  std::size_t size = 0;
  nanoseconds shortest{};
  const auto take = [&](share& part) {
    const auto timeout = timeout_of(part, now);
    if (due.empty()) shortest = timeout;
    // The shortest timeout of a script is the timeout of all. Too different ones stay for the next script.
    if (timeout < shortest / 2 || timeout > shortest * 2) return;
    // The first share makes the command and reads the answer for all. A plain lock and a fenced one have equal steps.
    if (!due.empty() && part.of.keys->of.renew != due.front()->of.keys->of.renew) return;
    // A claim of several permits has an argument for each.
    const std::size_t amount = part.of.field.amount();
    if (!due.empty() && size + amount > batch_size) return;
    HOLDFAST_ASSERT(!in_flight(part) && guarded(part.of));
    if (!if_memory([&] { due.emplace_back(&part); })) return;  // the first needs none
    size += amount;
    unschedule(part);
    part.stage = renewal_stage::in_flight;
    part.sent_by_push = part.planned_by_push;
    part.planned_by_push = false;
  };
  for (auto next = waiting.begin(); next != waiting.end() && size < batch_size;) take(*next++);
  const auto soon = now + nanoseconds(due.front()->of.wanted.ttl) / 60;
  for (auto* next = scheduled_.first_until(soon); next && size < batch_size;) {
    auto& part = *std::exchange(next, scheduled_.next_until(*next, soon));
    // Its keys are far from the cache. They are fetched while this share is looked at.
    if (next) prefetch(*next->of.keys);
    if (part.renewal > now + nanoseconds(part.of.wanted.ttl) / 60) break;
    if (part.node == node && home_of(part) == node) take(part);
  }
  HOLDFAST_ASSERT(!due.empty());
  return due;
}

void renewals::answered(node_id node, std::size_t count) {
  auto& unanswered = queues_[node].unanswered;
  HOLDFAST_ASSERT(unanswered >= count);
  unanswered -= count;
}

void renewals::link_changed(node_id node, bool up) {
  queues_[node].up = up;
  // A server that was never up has not answered anything, so a first renewal there would only wait.
  queues_[node].was_up |= up;
}

bool renewals::is_up(node_id node) const noexcept {
  const auto found = queues_.find(node);
  // A server that has not reported a link yet counts as up, or nothing would ever be sent to it.
  return found == queues_.end() || found->second.up;
}

bool renewals::was_up(node_id node) const noexcept {
  const auto found = queues_.find(node);
  return found != queues_.end() && found->second.was_up;
}

bool renewals::any_down() const noexcept {
  return std::any_of(queues_.begin(), queues_.end(), [](const auto& each) { return !each.second.up; });
}

void renewals::forget_dead() {
  std::erase_if(queues_, [](const auto& each) {
    return !each.second.up && each.second.due.empty() && each.second.unanswered == 0;
  });
}

node_id renewals::home_of(const share& part) const {
  // With several primaries each share belongs to one of them. Otherwise the slot of the key decides.
  return servers_.primaries() > 1 ? part.node : servers_.node_of(part.of.keys->lock);
}

// At most half of the validity: the other half is left to repeat the renewal, and to warn the holder.
nanoseconds renewals::timeout_of(const share& part, time_point now) const {
  const auto half = (part.of.valid_until() - now) / 2;
  return std::max<nanoseconds>(std::min(command_budget(settings_, part.of.wanted.ttl), half), milliseconds(1));
}

std::size_t renewals::size() const noexcept {
  std::size_t all = scheduled_.size();
  for (const auto& [node, each] : queues_) all += each.due.size();
  return all;
}

}  // namespace holdfast::detail
