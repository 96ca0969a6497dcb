// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>

#include <holdfast/owner.hpp>

namespace holdfast::blocking::detail {

/// A lock object that a thread holds something through.
class thread_end_listener {
 public:
  /// What the thread holds through it is to be released. In the thread that ends.
  virtual void thread_ends(const owner& thread) noexcept = 0;

 protected:
  ~thread_end_listener() = default;
};

/// The calling thread, as an owner of locks.
owner this_thread() noexcept;

/// It holds something through this lock, which is to be released when the thread ends; also what is locked in the
/// destructor of a thread_local object. Where the main thread ends nothing comes after those, except the process's end.
void note_hold(const std::shared_ptr<thread_end_listener>& through);
/// It holds nothing through it any more.
void forget_hold(const thread_end_listener& through) noexcept;

/// std::lock waits for one lock, tries the others, and where one of these is taken gives back all and waits for that.
/// Our waiters pass a lock on from one to the next, so a lock that is waited for is always taken: callers that want the
/// same locks would try for ever. So a thread whose try has failed beside what it holds rests before it waits again,
/// the longer, the more often it has failed since it had all: then some find the locks free.
void note_failed_try();
void rest_after_failed_tries();

}  // namespace holdfast::blocking::detail
