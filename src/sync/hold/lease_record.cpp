// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/lease_record.hpp"

#include <utility>

namespace holdfast::detail {
namespace {

/// A destruction within this time after the resumption belongs to the expression that got the lease.
constexpr nanoseconds instant = std::chrono::microseconds(10);

}  // namespace

lease_record::lease_record(hold_ptr hold, owner_id by, terms terms, time_point now, std::shared_ptr<lease_home> where)
    : of(std::move(hold)), owner(by), asked(terms), home(std::move(where)), fed_at(now.time_since_epoch().count()) {}

time_point lease_record::renewed_until() const noexcept {
  // The owner may have unlocked on another thread, and the strand has not given the lease up yet.
  if (!asked.renew || released.load(std::memory_order_acquire)) return {};
  if (!asked.limited()) return time_point::max();
  return time_point(nanoseconds(fed_at.load(std::memory_order_acquire))) + asked.max_hold;
}

lease_state lease_record::state() const noexcept {
  return released.load(std::memory_order_acquire) ? lease_state::released : of->state();
}

void lease_record::note_drop() noexcept {
  const auto since = handed_over_at.load(std::memory_order_acquire);
  // A lease that is destroyed at once was most likely never stored: its caller has ignored the result of lock().
  if (since == 0 || used.load(std::memory_order_relaxed)) return;
  dropped_at_once = of->time().now() - time_point(nanoseconds(since)) < instant;
}

bool lease_record::feed() noexcept {
  // First the new instant, then the pause. pause_renewal_unless() works in the opposite order, so one of the two sees
  // the other.
  fed_at.store(of->time().now().time_since_epoch().count(), std::memory_order_release);
  return of->resume_renewal();
}

const lease_record::end_listener* lease_record::add_listener(end_listener listener) {
  // A forward list, because most leases have no listener: it takes one word.
  auto last = end_listeners_.before_begin();
  for (auto next = end_listeners_.begin(); next != end_listeners_.end(); ++next) last = next;
  return &*end_listeners_.insert_after(last, std::move(listener));
}

lease_record::end_listener lease_record::remove_listener(const end_listener* removed) {
  auto before = end_listeners_.before_begin();
  for (auto next = end_listeners_.begin(); next != end_listeners_.end(); before = next++) {
    if (&*next != removed) continue;
    auto listener = std::move(*next);
    end_listeners_.erase_after(before);
    return listener;
  }
  return {};
}

void lease_record::tell_end(error_code reason) {
  // A listener may add or remove listeners, so the list is taken out first.
  for (auto& listener : std::exchange(end_listeners_, {})) listener(reason);
}

}  // namespace holdfast::detail
