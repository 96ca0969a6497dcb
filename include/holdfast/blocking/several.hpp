// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking/lockable.hpp>
#include <holdfast/blocking/mutex.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lock_options.hpp>

#include <functional>
#include <string>
#include <vector>

namespace holdfast::blocking {

/// The parts of a multi_lock or an any_of: `{orders, stock}`. They are needed only until the constructor returns. Their
/// own lock_options do not count.
using mutex_list = std::vector<std::reference_wrapper<const mutex>>;

/// holdfast::multi_lock for threads: several locks as one, all or none, in one order for all processes. For many
/// contended names use it in place of std::scoped_lock, which asks for one name after the other and restarts when one
/// is taken.
///
///     holdfast::blocking::multi_lock both({orders, stock});
///     std::lock_guard lock(both);
class HOLDFAST_EXPORT multi_lock : public lockable {
 public:
  /// Throws as holdfast::multi_lock; closed if a part was moved from.
  explicit multi_lock(const mutex_list& mutexes, lock_options = {});
};

/// holdfast::any_of for threads: any one of several locks of one client and kind, whichever is free. It never
/// re-enters: a thread that holds one of them gets another.
class HOLDFAST_EXPORT any_of : public lockable {
 public:
  /// Throws as holdfast::any_of; closed if a part was moved from.
  explicit any_of(const mutex_list& mutexes, lock_options = {});

  /// The lock of the newest hold that this thread has taken through this object. Empty without one.
  [[nodiscard]] std::string name() const;
};

}  // namespace holdfast::blocking
