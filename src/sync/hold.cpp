// SPDX-License-Identifier: BSL-1.0
#include "sync/hold.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/assert.hpp"

namespace holdfast::detail {
namespace {

/// So long after the resumption with a lease its destruction still belongs to the expression that got it.
constexpr nanoseconds instant = std::chrono::microseconds(10);

}  // namespace

hold::hold(const clock& c, shared_keys k, owner_field f, owner o, bool b,
           std::shared_ptr<const std::atomic<bool>> client_closed)
    : time(c), keys(std::move(k)), field(f), who(o), bound(b), client_closed_(std::move(client_closed)) {}

nanoseconds hold::left() const noexcept {
  const auto s = state_.load(std::memory_order_acquire);
  if (s == lease_state::lost || s == lease_state::released || client_closed_->load(std::memory_order_acquire))
    return {};
  if (here.elsewhere()) return {};
  auto until = valid_until_.load(std::memory_order_acquire);
  while (until >= 0) {
    const auto rest = time_point(nanoseconds(until)) - time.now();
    if (rest > nanoseconds::zero()) return rest;
    if (valid_until_.compare_exchange_weak(until, -until, std::memory_order_acq_rel)) break;
  }
  return {};
}

time_point hold::valid_until() const noexcept {
  return time_point(nanoseconds(std::abs(valid_until_.load(std::memory_order_acquire))));
}

lease_state hold::state() const noexcept {
  const auto s = state_.load(std::memory_order_acquire);
  if (exclusive()) return s;
  // Released meanwhile, perhaps: then that ended it.
  return state_.load(std::memory_order_acquire) == lease_state::released ? lease_state::released : lease_state::lost;
}

std::string hold::cause_of_loss() const {
  if (state_.load(std::memory_order_acquire) == lease_state::lost) return lost_because;
  return renewal_paused.load(std::memory_order_acquire) ? "its TTL was over, and nobody wanted it to be renewed"
                                                        : "its validity was over, and Redis had not confirmed it again";
}

bool hold::extend(time_point until) noexcept {
  const auto later = until.time_since_epoch().count();
  auto now = valid_until_.load(std::memory_order_acquire);
  while (now >= 0 && now < later)
    if (valid_until_.compare_exchange_weak(now, later, std::memory_order_acq_rel)) break;
  return now >= 0;
}

void hold::enter(lease_state s) noexcept {
  HOLDFAST_ASSERT(!ended());
  state_.store(s, std::memory_order_release);
}

bool hold::ended() const noexcept {
  const auto s = state_.load(std::memory_order_acquire);
  return s == lease_state::lost || s == lease_state::released;
}

milliseconds hold::ttl() const noexcept {
  milliseconds longest{};
  for (const auto* l : leases) longest = std::max(longest, l->asked.ttl);
  return longest;
}

key_ttl hold::ttl_to_send(milliseconds wanted, double rho) noexcept {
  const auto ttl = std::max(wanted, left_until(valid_until(), rho));
  may_live_until_ = std::max(may_live_until_, time.now() + ttl);
  return {ttl, may_live(rho)};
}

milliseconds hold::may_live(double rho) const noexcept {
  return std::max(left_until(valid_until(), rho), left_until(may_live_until_, 0));
}

// Also of a client that is closed.
milliseconds hold::left_until(time_point when, double rho) const noexcept {
  const std::chrono::duration<double, std::milli> left = std::max(when - time.now(), nanoseconds::zero()) * (1 + rho);
  return std::chrono::ceil<milliseconds>(left);
}

time_point hold::renewed_until() const noexcept {
  time_point last{};
  for (const auto* l : leases) last = std::max(last, l->renewed_until());
  return last;
}

event event_of(event::kind what, const hold& h, time_point now) {
  event e{.what = what, .name = h.keys->name};
  e.held = now - h.granted_at;
  e.owner = h.who;
  e.id = h.field;
  e.token = h.token;
  e.count = h.leases.size();
  e.ttl = h.ttl();
  return e;
}

void dropped_leases::push(std::shared_ptr<lease_record> lease) noexcept {
  link* const one = lease.get();
  HOLDFAST_ASSERT(!one->self);
  one->self = std::move(lease);
  one->next = newest_.load(std::memory_order_acquire);
  while (one->next != &closed_)
    if (newest_.compare_exchange_weak(one->next, one, std::memory_order_acq_rel)) return;
  const auto last = std::move(one->self);
}

std::shared_ptr<lease_record> dropped_leases::pop() noexcept {
  if (!oldest_ && newest_.load(std::memory_order_acquire) != &closed_)
    for (link* one = newest_.exchange(nullptr, std::memory_order_acq_rel); one;)
      one = std::exchange(one->next, std::exchange(oldest_, one));
  if (!oldest_) return nullptr;
  auto lease = std::move(oldest_->self);
  oldest_ = oldest_->next;
  return lease;
}

void dropped_leases::close() noexcept {
  while (pop()) {
  }
  for (link* one = newest_.exchange(&closed_, std::memory_order_acq_rel); one && one != &closed_;) {
    const auto last = std::move(one->self);
    one = one->next;
  }
}

lease_record::lease_record(std::shared_ptr<hold> h, terms t, time_point now, const std::weak_ptr<core>& c)
    : of(std::move(h)), asked(t), home(c.lock()), fed_at(now.time_since_epoch().count()) {}

time_point lease_record::renewed_until() const noexcept {
  if (!asked.renew || released.load(std::memory_order_acquire)) return {};
  if (!asked.max_hold) return time_point::max();
  return time_point(nanoseconds(fed_at.load(std::memory_order_acquire))) + *asked.max_hold;
}

lease_state lease_record::state() const noexcept {
  return released.load(std::memory_order_acquire) ? lease_state::released : of->state();
}

void lease_record::note_drop() noexcept {
  const auto since = handed_over_at.load(std::memory_order_acquire);
  if (since == 0 || used.load(std::memory_order_relaxed)) return;
  dropped_at_once = of->time.now() - time_point(nanoseconds(since)) < instant;
}

bool lease_record::feed() noexcept {
  fed_at.store(of->time.now().time_since_epoch().count(), std::memory_order_release);
  return of->renewal_paused.exchange(false, std::memory_order_acq_rel);
}

void lease_record::tell_end(error_code reason) {
  for (auto& listener : std::exchange(end_listeners, {})) listener(reason);
}

}  // namespace holdfast::detail
