// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/dropped_leases.hpp"

#include <utility>

#include "base/assert.hpp"
#include "sync/hold/lease_record.hpp"

// The list is a stack of links that any thread pushes to. The strand takes the whole stack at once and reverses it, so
// that leases are given up in the order in which they were dropped. No link is ever taken out by itself. So a push is
// safe even if an address is used again between its load and its exchange.

namespace holdfast::detail {

void dropped_leases::push(std::shared_ptr<lease_record> lease) noexcept {
  link* const one = lease.get();
  HOLDFAST_ASSERT(!one->self);
  one->self = std::move(lease);
  // The list owns the lease from the exchange on: the strand may pop it before push() returns.
  one->next = newest_.load(std::memory_order_acquire);
  while (one->next != &closed_)
    if (newest_.compare_exchange_weak(one->next, one, std::memory_order_acq_rel)) return;
  // The list is closed, so nobody will pop the lease. Its last reference goes at the end of this call.
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
  // A thread may have pushed between the last pop() and the exchange. Behind the mark no push can follow.
  for (link* one = newest_.exchange(&closed_, std::memory_order_acq_rel); one && one != &closed_;) {
    const auto last = std::move(one->self);
    one = one->next;
  }
}

}  // namespace holdfast::detail
