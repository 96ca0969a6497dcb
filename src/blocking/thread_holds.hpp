// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/lease.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/owner.hpp>

#include "blocking/call.hpp"
#include "blocking/stop_thread.hpp"

namespace holdfast::blocking::detail {

using any_lease = std::variant<lease, multi_lease>;

/// The end of a hold.
struct hold_ending {
  bool known = false;           // the hold was given back
  bool lost = false;            // it was lost before that
  std::exception_ptr failed{};  // the failure of the unlock, or null
};

/// One hold of one thread.
struct thread_hold {
  owner_id thread;
  std::uint64_t serial;  // never again
  any_lease granted;
  stop_to_request loss{};                // once a stop token was asked for
  std::shared_ptr<hold_ending> ended{};  // the place where the end is noted, if watch() was called
};

/// The holds of threads through one lock object, and their calls that wait, guarded by a mutex. Any thread. Nothing
/// here waits: lock_core copies out what takes time, and does it.
class thread_holds {
 public:
  /// The rest at the end of the lock object.
  struct leftovers {
    std::vector<thread_hold> holds;
    std::vector<call_ptr> waiting;
  };

  /// `name`: of the lock, for errors; empty where there are several.
  explicit thread_holds(std::string name) : name_(std::move(name)) {}

  const std::string& name() const noexcept { return name_; }
  /// A text for an error of this lock.
  std::string about(std::string_view text) const;

  // All of these throw closed when the lock object has ended.
  void join(const call_ptr& waiting);
  /// Returns the serial number of the new hold.
  std::uint64_t keep(const owner& thread, any_lease granted);
  /// Takes a hold back that take_out() gave, as the newest of its thread. `held` is as it was if this throws.
  void put_back(thread_hold&& held);
  /// Calls `use(thread_hold&)` with the newest hold of this thread. Throws not_held without one.
  template <class Use>
  auto with_own(const owner& thread, Use use) {
    const std::lock_guard lock(guard_);
    return use(must_find(thread));
  }
  /// Returns the place where the end of this thread's newest hold will be noted.
  std::shared_ptr<const hold_ending> watch(const owner& thread);

  void leave(const call_ptr& waiting) noexcept;
  bool any_of(const owner& thread) const noexcept;
  /// Calls `use(const thread_hold*)` with the newest hold of this thread, or null.
  template <class Use>
  auto with_newest(const owner& thread, Use use) const {
    const std::lock_guard lock(guard_);
    const thread_hold* const newest = find(holds_, thread);
    return use(newest);
  }
  template <class Use>
  auto with_newest(const owner& thread, Use use) {
    const std::lock_guard lock(guard_);
    return use(find(holds_, thread));
  }
  /// Takes out this thread's hold of that number, or its newest; empty: there is none.
  std::optional<thread_hold> take_out(const owner& thread, std::optional<std::uint64_t> serial) noexcept;
  /// Takes out the newest hold of this thread for which `first` is true, or else its newest; empty: there is none.
  std::optional<thread_hold> take_out(const owner& thread, bool (*first)(const any_lease&) noexcept) noexcept;
  /// The lock object ends.
  leftovers abandon() noexcept;

 private:
  // The caller has the mutex.
  template <class Holds>
  static auto find(Holds& holds, const owner& thread) noexcept -> decltype(holds.data()) {
    const auto newest =
        std::find_if(holds.rbegin(), holds.rend(), [&](const thread_hold& each) { return each.thread == thread; });
    return newest == holds.rend() ? nullptr : &*newest;
  }
  thread_hold& must_find(const owner& thread);
  void check_alive() const;

  const std::string name_;
  mutable std::mutex guard_;
  bool abandoned_ = false;
  std::uint64_t last_serial_ = 0;
  std::vector<thread_hold> holds_;  // of one thread, its re-entries, and those of threads that have lost theirs: few
  std::vector<call_ptr> waiting_;
};

/// A call that waits, while this object lives. It is cancelled when the lock object ends.
class place_in_line {
 public:
  place_in_line(thread_holds& holds, call_ptr waiting) : holds_(holds), waiting_(std::move(waiting)) {
    holds_.join(waiting_);
  }
  place_in_line(const place_in_line&) = delete;
  place_in_line& operator=(const place_in_line&) = delete;
  ~place_in_line() { holds_.leave(waiting_); }

 private:
  thread_holds& holds_;
  const call_ptr waiting_;
};

}  // namespace holdfast::blocking::detail
