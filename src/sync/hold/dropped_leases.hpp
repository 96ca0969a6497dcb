// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <memory>

namespace holdfast::detail {

struct lease_record;

/// Leases that were dropped and are not given up yet. Any thread may add one.
///
/// Decision: the end of a lease finds its memory reserved. A destructor must not fail, so a dropped lease goes into the
/// list through its own record, and needs no memory. A handler tells the strand to look into the list. If there is no
/// memory for that handler, the timers look when they wake: a client with a lease always has a timer.
///
/// A record in the list keeps itself alive, because its hold still refers to it.
class dropped_leases {
 public:
  struct link {
    link* next = nullptr;
    std::shared_ptr<lease_record> self;
  };

  dropped_leases() = default;
  dropped_leases(const dropped_leases&) = delete;
  dropped_leases& operator=(const dropped_leases&) = delete;
  ~dropped_leases() { close(); }

  void push(std::shared_ptr<lease_record> lease) noexcept;
  /// The oldest lease; null when there is none. On the strand.
  std::shared_ptr<lease_record> pop() noexcept;
  /// No hold refers to a lease any more. Forgets all leases, and each later one at once. On the strand, or after it.
  void close() noexcept;

 private:
  link closed_;  // in newest_: the list is closed
  std::atomic<link*> newest_{nullptr};
  link* oldest_ = nullptr;  // the leases that the strand has taken over, oldest first
};

}  // namespace holdfast::detail
