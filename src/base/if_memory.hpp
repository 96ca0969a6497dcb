// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <exception>
#include <new>

namespace holdfast::detail {

/// Runs an action that may be skipped if there is no memory for it. True: it was done.
template <class Act>
bool if_memory(Act act) {
  try {
    act();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Several steps that must all be tried, even if one finds no memory. rethrow() throws the last such failure.
///
/// Decision: a failed allocation leaves no command unanswered and no subscriber without its notification. Each of them
/// is a step; the exception follows.
class each_step {
 public:
  template <class Act>
  void operator()(Act act) {
    try {
      act();
    } catch (const std::bad_alloc&) {
      no_memory_ = std::current_exception();
    }
  }
  void rethrow() {
    if (no_memory_) std::rethrow_exception(no_memory_);
  }

 private:
  std::exception_ptr no_memory_;
};

}  // namespace holdfast::detail
