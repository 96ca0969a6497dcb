// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <utility>

#include <holdfast/blocking/lockable.hpp>

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
  /// `Lock`: mutex or a class of it.
  template <class Lock>
  static Lock make(std::shared_ptr<lock_core> core) {
    return Lock(std::move(core));
  }
};

}  // namespace holdfast::blocking::detail
