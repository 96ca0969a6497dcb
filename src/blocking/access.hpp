// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <utility>

#include <holdfast/blocking/election.hpp>
#include <holdfast/blocking/expirable_semaphore.hpp>
#include <holdfast/blocking/latch.hpp>
#include <holdfast/blocking/lockable.hpp>
#include <holdfast/blocking/shared_mutex.hpp>

#include "blocking/lock_core.hpp"

namespace holdfast::blocking::detail {

/// The way to the private parts of public types.
struct access {
  static bool has_core(const lockable& lockable) noexcept { return lockable.core_ != nullptr; }
  /// Throws closed where it was moved from.
  static const std::shared_ptr<lock_core>& core(const lockable& lockable) {
    if (!lockable.core_) throw error(errc::closed, "the lock was moved from");
    return lockable.core_;
  }
  static const std::shared_ptr<lock_core>& core(const expirable_semaphore& semaphore) {
    if (!semaphore.core_) throw error(errc::closed, "the semaphore was moved from");
    return semaphore.core_;
  }
  static expirable_semaphore make_semaphore(std::shared_ptr<lock_core> core, holdfast::expirable_semaphore of) {
    return {std::move(core), std::move(of)};
  }
  static shared_mutex make_shared_mutex(mutex writer, mutex reader, holdfast::shared_mutex of) {
    return {std::move(writer), std::move(reader), std::move(of)};
  }
  static election make_election(mutex candidate, holdfast::election of) {
    return {std::move(candidate), std::move(of)};
  }
  static latch make_latch(std::shared_ptr<io_thread> io, holdfast::latch of) { return {std::move(io), std::move(of)}; }
  /// `Lock`: mutex or a class of it.
  template <class Lock>
  static Lock make(std::shared_ptr<lock_core> core) {
    return Lock(std::move(core));
  }
};

}  // namespace holdfast::blocking::detail
