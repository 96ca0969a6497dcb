// SPDX-License-Identifier: BSL-1.0
#include "sync/claim/validity.hpp"

#include <cstdlib>
#include <utility>

// Decision: loss is sticky. The strand may extend the validity while another thread reads it. If a reader has reported
// the end, a later confirmation must not bring the lock back: the reader has already acted on the loss. The first
// reader that sees the end therefore negates the instant, in the same atomic word. The magnitude stays, because until()
// still reports it.

namespace holdfast::detail {

validity::validity(boost::intrusive_ptr<const client_state> of) noexcept : client_(std::move(of)) {}

lease_clock::duration validity::left() const noexcept {
  // close() ends all holds at once, from any thread and without visiting each claim.
  if (client_->over()) return {};
  auto until = until_.load(std::memory_order_acquire);
  while (until >= 0) {
    const auto rest = time_point(lease_clock::duration(until)) - time().now();
    if (rest > lease_clock::duration::zero()) return rest;
    // A failed exchange has read a newer instant: the strand extended it, or another reader has ended it.
    if (until_.compare_exchange_weak(until, -until, std::memory_order_acq_rel)) break;
  }
  return {};
}

time_point validity::until() const noexcept {
  return time_point(lease_clock::duration(std::abs(until_.load(std::memory_order_acquire))));
}

bool validity::extend(time_point until) noexcept {
  const auto later = until.time_since_epoch().count();
  auto now = until_.load(std::memory_order_acquire);
  // A negative instant is never replaced. The caller learns that its confirmation came too late.
  while (now >= 0 && now < later)
    if (until_.compare_exchange_weak(now, later, std::memory_order_acq_rel)) break;
  return now >= 0;
}

void validity::limit(time_point until) noexcept {
  const auto earlier = until.time_since_epoch().count();
  auto now = until_.load(std::memory_order_acquire);
  // A negative instant is below every limit, so a validity that was seen over stays over.
  while (now > earlier)
    if (until_.compare_exchange_weak(now, earlier, std::memory_order_acq_rel)) break;
}

}  // namespace holdfast::detail
