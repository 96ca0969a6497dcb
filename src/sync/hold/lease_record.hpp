// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <forward_list>
#include <memory>

#include <holdfast/error.hpp>
#include <holdfast/lease_state.hpp>

#include "base/function.hpp"
#include "sync/claim/terms.hpp"
#include "sync/hold/dropped_leases.hpp"
#include "sync/hold/hold.hpp"

namespace holdfast::detail {

/// The client of a lease, in plain memory. The api derives its own class from it.
class lease_home {
 public:
  virtual ~lease_home() = default;
};

/// The state behind one lease of the user. It keeps its hold alive, and outlives the client if the user does.
///
/// Decision: a lease has an owner of its own. The readers of a client may share one hold, and each of them unlocks,
/// nests and drains for itself.
struct lease_record : dropped_leases::link {
  lease_record(hold_ptr of, owner_id owner, terms asked, time_point now, std::shared_ptr<lease_home> home);

  // Any thread.
  /// Releases the lease. True: this call did it, and no other one before.
  bool try_release() noexcept { return !released.exchange(true, std::memory_order_acq_rel); }
  /// The end of its max_hold. The beginning of time if it asks for no renewal, the end of time if it has no max_hold.
  time_point renewed_until() const noexcept;
  lease_state state() const noexcept;
  void note_use() noexcept {
    if (!used.load(std::memory_order_relaxed)) used.store(true, std::memory_order_relaxed);
  }
  /// The lease is being destroyed. Notes whether the user has dropped it at once, without using it.
  void note_drop() noexcept;
  /// Starts max_hold anew. True: the renewal of its hold was paused, and the caller must notify the watchdog.
  bool feed() noexcept;

  const hold_ptr of;
  const owner_id owner;
  const terms asked;
  // At this place, where they fill a gap: there are as many leases as held locks.
  std::atomic<bool> released{false};
  std::atomic<bool> used{false};  // the user has called a function of the lease
  bool dropped_at_once = false;   // written before it is given up
  bool bound = false;             // its caller has given or bound the owner
  const std::shared_ptr<lease_home> home;
  std::atomic<time_point::rep> fed_at;  // the grant, or the last feed()
  /// The time of the call that resumes the caller with the lease, while that call runs; else 0.
  std::atomic<time_point::rep> handed_over_at{0};

  // The client's strand.
  const void* coroutine = nullptr;  // the co_spawn thread that has taken it; null: unknown
  void note_caller(bool was_bound, const void* by) noexcept {
    bound = was_bound;
    coroutine = by;
  }
  /// Called once, with the reason of a loss, or with not_held when the lease was released.
  using end_listener = function<void(error_code)>;
  /// The listener is called after all earlier ones. The address identifies it until it is called.
  const end_listener* add_listener(end_listener listener);
  /// Returns the listener; empty if it was called before.
  end_listener remove_listener(const end_listener* listener);
  bool has_listeners() const noexcept { return !end_listeners_.empty(); }
  void tell_end(error_code reason);

 private:
  std::forward_list<end_listener> end_listeners_;
};

}  // namespace holdfast::detail
