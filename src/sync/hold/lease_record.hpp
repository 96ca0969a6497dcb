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

/// The client of a lease, in plain memory: the api derives its own from it.
class lease_home {
 public:
  virtual ~lease_home() = default;
};

/// What a lease points to.
struct lease_record : dropped_leases::link {
  lease_record(hold_ptr of, terms asked, time_point now, std::shared_ptr<lease_home> home);

  // Any thread.
  bool try_release() noexcept { return !released.exchange(true, std::memory_order_acq_rel); }  // true once
  /// When its max_hold is over; the beginning of time where it asks for no renewal.
  time_point renewed_until() const noexcept;
  lease_state state() const noexcept;
  void note_use() noexcept {
    if (!used.load(std::memory_order_relaxed)) used.store(true, std::memory_order_relaxed);
  }
  /// Its lease is being destroyed: was that all that happened to it?
  void note_drop() noexcept;
  /// Starts max_hold anew. True: its hold is renewed no more, the watchdog is to be told.
  bool feed() noexcept;

  const hold_ptr of;
  const terms asked;
  const std::shared_ptr<lease_home> home;
  std::atomic<bool> released{false};
  std::atomic<bool> used{false};        // something was asked of its lease
  bool dropped_at_once = false;         // written before it is given up
  std::atomic<time_point::rep> fed_at;  // the grant, or the last feed()
  /// While the call runs that resumes its caller with it: since when; else 0.
  std::atomic<time_point::rep> handed_over_at{0};

  // The client's strand.
  /// Called once: with the reason of a loss, or with not_held when the lease was released.
  using end_listener = function<void(error_code)>;
  /// The new listener is told after those that were there before. The address names it until it is told.
  const end_listener* add_listener(end_listener listener);
  /// Takes it back; empty when it was told.
  end_listener remove_listener(const end_listener* listener);
  bool has_listeners() const noexcept { return !end_listeners_.empty(); }
  void tell_end(error_code reason);

 private:
  std::forward_list<end_listener> end_listeners_;
};

}  // namespace holdfast::detail
