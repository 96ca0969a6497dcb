// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>

#include <holdfast/owner.hpp>

namespace holdfast::blocking::detail {

/// A lock object through which a thread may hold locks.
class thread_end_listener {
 public:
  /// Releases the locks that the thread holds through it. Called in the thread that ends.
  virtual void thread_ends(const owner& thread) noexcept = 0;

 protected:
  ~thread_end_listener() = default;
};

/// The calling thread, as an owner of locks.
owner this_thread() noexcept;

/// The calling thread holds a lock through this object, which is released when the thread ends. That includes a lock
/// taken in the destructor of a thread_local object, except in the main thread.
void note_hold(const std::shared_ptr<thread_end_listener>& through);
/// The calling thread holds nothing through this object any more.
void forget_hold(const thread_end_listener& through) noexcept;

/// Decision: std::lock needs locks that are free now and then. It waits for one lock, tries the others, and gives all
/// back if one is taken. A lock that passes from waiter to waiter is always taken: four threads with the same eight
/// names stood still for seconds at a time. So a thread whose try has failed while it held other locks rests before it
/// waits again. The rest grows with each such failure since it had all locks (decorrelated jitter up to 1 s).
void note_failed_try();
void rest_after_failed_tries();

}  // namespace holdfast::blocking::detail
