// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>

#include <holdfast/owner.hpp>

namespace holdfast::blocking::detail {

class lock_core;

/// The calling thread, as an owner of locks.
owner this_thread() noexcept;

/// It holds something through this lock, which is to be released when the thread ends; also what is locked in the
/// destructor of a thread_local object. Where the main thread ends nothing comes after those, except the process's end.
void note_hold(const std::shared_ptr<lock_core>& through);
/// It holds nothing through it any more.
void forget_hold(const lock_core& through) noexcept;

/// std::lock waits for one lock, tries the others, and where one of these is taken gives back all and waits for that.
/// Our waiters pass a lock on from one to the next, so a lock that is waited for is always taken: callers that want the
/// same locks would try for ever. So a thread whose try has failed beside what it holds rests before it waits again,
/// the longer, the more often it has failed since it had all: then some find the locks free.
void note_failed_try();
void rest_after_failed_tries();

}  // namespace holdfast::blocking::detail
