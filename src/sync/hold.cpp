// SPDX-License-Identifier: BSL-1.0
#include "sync/hold.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "sync/lease_record.hpp"

namespace holdfast::detail {

hold::hold(std::shared_ptr<claim> c, owner_id o, bool b) : on(std::move(c)), who(o), bound(b) { on->hand_to(this); }

nanoseconds hold::left() const noexcept { return ended() ? nanoseconds() : on->left(); }

lease_state hold::state() const noexcept {
  if (exclusive()) return on->suspended() ? lease_state::suspended : lease_state::held;
  // Released meanwhile, perhaps: then that ended it.
  return end_.load(std::memory_order_acquire) == lease_state::released ? lease_state::released : lease_state::lost;
}

std::string hold::cause_of_loss() const {
  if (end_.load(std::memory_order_acquire) == lease_state::lost) return end_detail_;
  return renewal_paused() ? "its TTL was over, and nobody wanted it to be renewed"
                          : "its validity was over, and Redis had not confirmed it again";
}

void hold::end(lease_state how, error_code why, std::string detail) noexcept {
  HOLDFAST_ASSERT(!ended() && (how == lease_state::lost || how == lease_state::released));
  end_reason_ = why;
  end_detail_ = std::move(detail);
  end_.store(how, std::memory_order_release);
  if (on->holder() == this) on->hand_to(nullptr);
}

bool hold::ended() const noexcept { return end_.load(std::memory_order_acquire) != lease_state::held; }

milliseconds hold::ttl() const noexcept {
  milliseconds longest{};
  for (const auto* l : leases) longest = std::max(longest, l->asked.ttl);
  return longest;
}

time_point hold::renewed_until() const noexcept {
  time_point last{};
  for (const auto* l : leases) last = std::max(last, l->renewed_until());
  return last;
}

event event_of(event::kind what, const hold& h, time_point now) {
  event e{.what = what, .name = h.keys()->name};
  e.held = now - h.granted_at;
  e.owner = h.who;
  e.id = h.field();
  e.token = h.token;
  e.count = h.leases.size();
  e.ttl = h.ttl();
  return e;
}

}  // namespace holdfast::detail
