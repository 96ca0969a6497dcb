// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/owner.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "support/fake_topology.hpp"
#include "support/manual_clock.hpp"
#include "support/seeded_random.hpp"
#include "sync/command/single_server_sender.hpp"
#include "sync/hold/claim_holders.hpp"
#include "sync/hold/engine_parts.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/hold/unlocking.hpp"

namespace holdfast::test {

inline const detail::uuid client_of_claims(0, 0);

inline detail::claim_ptr make_claim(detail::client_state_ptr client) {
  const detail::node_id node = 0;
  return detail::claim::make(std::move(client),
                             std::make_shared<const detail::lock_keys>(detail::plain_lock, "a", detail::naming{"p:"}),
                             detail::owner_field(client_of_claims, 1), std::span(&node, 1), 1);
}

/// A hold on a claim of one share, its leases, and nobody around it.
struct hold_fixture : detail::hold_host {
  manual_clock clock;
  manual_timers timers{clock};
  fake_topology server{clock, timers};
  seeded_random random{1};
  config settings;
  const detail::single_server_sender sender;
  detail::environment around{
      .time = clock, .alarms = timers, .servers = server, .random = random, .settings = settings, .sender = &sender};
  detail::releases freeing{around};
  detail::unlock_time_budget patience{around};
  detail::claim_holders holders;
  detail::watchdog renewals{around, holders};
  detail::open_calls calls;
  const detail::client_state_ptr client{new detail::client_state(clock, new detail::block_pool)};
  const detail::engine_parts services{around, renewals, freeing, patience, calls, {}, client};
  const detail::claim_ptr on = make_claim(client);
  const detail::hold_ptr h = make_hold(on);
  std::vector<std::shared_ptr<detail::lease_record>> records;

  hold_fixture() = default;
  ~hold_fixture() { h->leave_host(); }

  detail::hold_ptr make_hold(detail::claim_ptr c) {
    auto& pool = *c->client().blocks;
    return new (pool) detail::hold(std::move(c), owner(), false, {}, 0, clock.now(), services, *this);
  }
  bool extend(detail::time_point until) { return on->confirm(on->sole_share(), until); }
  detail::lease_record& lease(detail::terms t) { return lease(h, t); }
  detail::lease_record& lease(const detail::hold_ptr& of, detail::terms t) {
    records.push_back(std::make_shared<detail::lease_record>(of, of->owner, t, clock.now(), nullptr));
    of->add(*records.back());
    return *records.back();
  }
  /// Releases the hold by the unlock of its only lease.
  void release(const detail::hold_ptr& which) {
    give_up(lease(which, {.ttl = std::chrono::seconds(1), .renew = false, .max_hold = {}}), {});
  }

 private:
  void ended(detail::hold&) override {}
  void came(owner_id) override {}
  void left(owner_id) override {}
  void forget(detail::hold&) override {}
  void release_begins() override {}
  detail::departure departs(const detail::lock_keys&, bool) override { return {}; }
  bool keeps_place(const detail::lock_keys&) const override { return false; }
  void release_ends(const release_end&) override {}
  bool pass_on(detail::hold&, const handoff_offer&) override { return false; }
};

}  // namespace holdfast::test
