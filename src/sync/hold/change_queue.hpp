// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <list>
#include <memory>
#include <utility>

#include "base/function.hpp"

namespace holdfast::detail {

/// Runs changes one after another: each begins when the one before it has ended. The caller of add() and ended() keeps
/// the queue alive during the call.
///
/// Nearly every queue of a client is empty, so an empty one has no list: it takes two words.
class change_queue {
 public:
  /// A change is under way.
  bool busy() const noexcept { return busy_; }
  /// Begins the change at once if none is under way, else at its turn. Every change calls ended() once.
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
  /// The waiting changes never begin. Needs no memory.
  void forget() noexcept { waiting_.reset(); }

 private:
  using changes = std::list<function<void()>>;

  std::unique_ptr<changes> waiting_;  // null if none waits; never empty
  bool busy_ = false;
  unsigned ended_ = 0;  // changes that have ended and whose successor has not begun
};

}  // namespace holdfast::detail
