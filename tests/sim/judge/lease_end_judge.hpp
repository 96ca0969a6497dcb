// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <list>

#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promise that each lease learns of its end:
///   - Each lease is notified of the loss of its hold, once and at once. A close notifies all leases of its client.
///   - lock() reports a loss only to an owner with a lease of the lost hold: no other owner has lost anything.
///   - The first unlock of a lease never answers that the lock was not held.
///   - A downgrade that succeeds ends the write lease as an unlock does. No other downgrade does.
class lease_end_judge {
 public:
  explicit lease_end_judge(evidence& known) : known_(known) {}

  void granted(sim_client& client, const record_ptr& lease);
  void released(const record_ptr& lease);
  void begin_downgrade(const record_ptr& write);
  void end_downgrade(const record_ptr& write, bool reads);
  void unlocked(const sim_client& client, const detail::lock_keys& name, error_code answer);
  void lost_to_caller(const sim_client& client, const detail::lock_keys& name, bool has_lease);
  /// After each instant.
  void look();

 private:
  struct lease_watch {
    sim_client* client;
    record_ptr lease;
    int notifications = 0;
    time_point released_at{};
    bool released = false, over = false;
    bool downgraded = false;  // it may become a read lease: the answer is still to come
    bool told_not_held = false;

    const std::string& name() const { return lease->of->keys()->name; }
  };

  void ended(lease_watch&, error_code reason);
  void look_at(lease_watch&);
  void accuse_of_not_held(const lease_watch&);

  evidence& known_;
  std::list<lease_watch> leases_;
};

}  // namespace holdfast::sim
