// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <list>
#include <memory>
#include <utility>

#include "base/function.hpp"

namespace holdfast::detail {

/// Changes that run one after the other: each begins when the one before it has ended. Who adds or ends one keeps the
/// queue alive meanwhile.
class change_queue {
 public:
  /// A change is under way.
  bool busy() const noexcept { return busy_; }
  /// Begins the change: at once where none is under way. Every change calls ended() once.
  template <class Change>
  void add(Change change) {
    if (!std::exchange(busy_, true)) return change();
    if (waiting_) return waiting_->push_back(std::move(change));
    auto first = std::make_unique<changes>();
    first->push_back(std::move(change));
    waiting_ = std::move(first);
  }
  /// The change under way has ended.
  void ended();
  /// Those that wait never begin. Needs no memory.
  void forget() noexcept { waiting_.reset(); }

 private:
  using changes = std::list<function<void()>>;

  std::unique_ptr<changes> waiting_;  // null where none waits, as in most queues; never empty
  bool busy_ = false;
  unsigned ended_ = 0;  // changes that are not followed by the next yet
};

}  // namespace holdfast::detail
