// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/lease_end_judge.hpp"

#include <utility>

namespace holdfast::sim {

void lease_end_judge::granted(sim_client& client, const record_ptr& lease) {
  const auto watch = leases_.insert(leases_.end(), {&client, lease});
  client.locks().when_ended(lease, [this, watch](error_code reason) { ended(*watch, reason); });
}

void lease_end_judge::ended(lease_watch& each, error_code reason) {
  if (++each.notifications > 1) known_.accuse(*each.client, "was told twice of the end of its lease of " + each.name());
  const bool lost = reason != errc::not_held;
  known_.met.hit(!lost                          ? "lease ended: not_held"
                 : reason == errc::lost         ? "lease ended: lost"
                 : reason == errc::closed       ? "lease ended: closed"
                 : reason == errc::corrupt_lock ? "lease ended: corrupt_lock"
                                                : "lease ended: otherwise");
  // An unlock() that finds the lease lost releases it in the instant of the loss.
  if (lost && each.released && each.released_at != known_.now())
    known_.accuse(*each.client, "was told of the loss of a lease that it had released: " + each.name());
  each.told_not_held |= !lost;
  if (!lost && !each.released && !each.downgraded) accuse_of_not_held(each);
}

void lease_end_judge::released(const record_ptr& lease) {
  for (auto& each : leases_)
    if (each.lease == lease && !std::exchange(each.released, true)) each.released_at = known_.now();
}

void lease_end_judge::begin_downgrade(const record_ptr& write) {
  for (auto& each : leases_)
    if (each.lease == write) each.downgraded = true;
}

void lease_end_judge::end_downgrade(const record_ptr& write, bool reads) {
  if (reads) released(write);
  for (auto& each : leases_) {
    if (each.lease != write) continue;
    each.downgraded = false;
    if (each.told_not_held && !each.released) accuse_of_not_held(each);
  }
}

void lease_end_judge::accuse_of_not_held(const lease_watch& each) {
  known_.accuse(*each.client, "was told not_held of a lease that it has: " + each.name());
}

void lease_end_judge::unlocked(const sim_client& client, const detail::lock_keys& name, error_code answer) {
  if (answer == errc::not_held) known_.accuse(client, "was told that it had not held " + name.name + ", which it had");
}

void lease_end_judge::lost_to_caller(const sim_client& client, const detail::lock_keys& name, bool has_lease) {
  if (!has_lease) known_.accuse(client, "was told of the loss of " + name.name + ", of which it had no lease");
}

void lease_end_judge::look() {
  for (auto& each : leases_) look_at(each);
  leases_.remove_if([](const auto& each) { return each.over; });
}

void lease_end_judge::look_at(lease_watch& each) {
  if (each.released || each.client->closing()) {
    each.over = each.notifications != 0;
    if (!each.over)
      known_.accuse(*each.client, "was not told that its lease of " + each.name() +
                                      (each.released ? " was released" : " ended when it was closed"));
    return;
  }
  if (each.lease->of->exclusive()) {
    if (each.notifications != 0)
      known_.accuse(*each.client, "was told of the loss of " + each.name() + " and may believe to hold it");
    return;
  }
  if (each.client->process().paused()) return;
  if (each.notifications == 0) known_.accuse(*each.client, "was not told in time that it has lost " + each.name());
}

}  // namespace holdfast::sim
