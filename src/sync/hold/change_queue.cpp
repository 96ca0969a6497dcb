// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/change_queue.hpp"

#include "base/assert.hpp"

namespace holdfast::detail {

// A change that ends at once calls again: counted, so that the stack does not grow.
void change_queue::ended() {
  HOLDFAST_ASSERT(busy_);
  if (++ended_ > 1) return;
  for (; ended_ > 0; --ended_) {
    if (!waiting_) {
      busy_ = false;
      ended_ = 0;
      return;
    }
    const auto next = std::move(waiting_->front());
    waiting_->pop_front();
    if (waiting_->empty()) waiting_.reset();
    next();
  }
}

}  // namespace holdfast::detail
