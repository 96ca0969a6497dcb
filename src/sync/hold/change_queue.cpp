// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/change_queue.hpp"

#include "base/assert.hpp"

namespace holdfast::detail {

// A change may end inside its own call, and so may the next. The outermost call runs them all in a loop, or the stack
// would grow with each. Inner calls only count.
void change_queue::ended() {
  HOLDFAST_ASSERT(busy_);
  if (++ended_ > 1) return;
  for (; ended_ > 0; --ended_) {
    if (!waiting_) {
      busy_ = false;
      ended_ = 0;
      return;
    }
    // The change is taken out before it runs: it may add changes, or forget all of them.
    const auto next = std::move(waiting_->front());
    waiting_->pop_front();
    if (waiting_->empty()) waiting_.reset();
    next();
  }
}

}  // namespace holdfast::detail
