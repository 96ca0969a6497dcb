// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking/lockable.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lock_holder.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::blocking {

/// holdfast::mutex for threads: a reentrant, self-renewing lock on one name.
///
///     holdfast::blocking::client redis({.url = "redis://localhost"});
///     auto orders = redis.mutex("orders");
///     std::lock_guard lock(orders);
class HOLDFAST_EXPORT mutex : public lockable {
 public:
  // As the functions of holdfast::mutex, but they wait. They throw as those, and resource_deadlock_would_occur.
  bool force_unlock() const;    ///< breaks any hold of the name, of any holder; true: there was one
  bool is_locked() const;       ///< held by anyone, anywhere; a snapshot
  unsigned hold_count() const;  ///< holds of this thread, through any object of this client; Redis is asked
  std::optional<lock_holder> holder() const;          ///< the holder; empty: free
  std::optional<milliseconds> remaining_ttl() const;  ///< empty: free; milliseconds::max(): without TTL

  const std::string& name() const noexcept;  ///< empty if this object was moved from

 protected:
  friend detail::access;
  explicit mutex(std::shared_ptr<detail::lock_core>) noexcept;
};

/// holdfast::fenced_mutex for threads: its holds have a fencing token, for the resource to check.
class HOLDFAST_EXPORT fenced_mutex : public mutex {
 public:
  /// The token of the newest hold that this thread has taken through this object; it stays when that hold is lost.
  /// Empty without one.
  [[nodiscard]] std::optional<std::uint64_t> token() const noexcept;
  /// The newest token of any holder: see holdfast::fenced_mutex::last_token().
  std::optional<std::uint64_t> last_token() const;

 private:
  friend detail::access;
  using mutex::mutex;
};

/// holdfast::simple_mutex for threads: one string key, shared with other languages. Not re-entrant: lock() by the
/// thread that holds it throws already_held, and so does its try_lock().
class HOLDFAST_EXPORT simple_mutex : public mutex {
  friend detail::access;
  using mutex::mutex;
};

/// holdfast::fair_mutex for threads: it serves them in the order of their arrival, over all processes.
class HOLDFAST_EXPORT fair_mutex : public mutex {
 public:
  unsigned waiters() const;  ///< in the queue, those of all processes; see holdfast::fair_mutex::waiters()

 private:
  friend detail::access;
  using mutex::mutex;
};

/// holdfast::red_lock for threads: granted by a majority of config::red_lock.primaries.
class HOLDFAST_EXPORT red_lock : public mutex {
  friend detail::access;
  using mutex::mutex;
};

}  // namespace holdfast::blocking
