// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <memory>

namespace holdfast::detail {

struct lease_record;

/// Leases that were dropped and are not given up yet. Any thread, and no memory: each is in the list by itself, and
/// keeps itself alive there, because its hold still refers to it.
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
  /// The oldest one; null when there is none. On the strand.
  std::shared_ptr<lease_record> pop() noexcept;
  /// No hold refers to a lease any more: forgets all, also those that are still to come. On the strand, or after it.
  void close() noexcept;

 private:
  link closed_;  // in newest_: the end of the list for good
  std::atomic<link*> newest_{nullptr};
  link* oldest_ = nullptr;  // of those that were taken over: the strand's
};

}  // namespace holdfast::detail
