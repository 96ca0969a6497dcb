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
#include "sync/acquisition.hpp"
#include "sync/hold_services.hpp"
#include "sync/lease_record.hpp"

namespace holdfast::test {

inline std::shared_ptr<detail::claim> make_claim(const detail::clock& clock,
                                                 std::shared_ptr<const std::atomic<bool>> closed) {
  const detail::node_id node = 0;
  return std::make_shared<detail::claim>(clock, std::move(closed), std::make_shared<const detail::lock_keys>("a", "p:"),
                                         detail::owner_field("uuid:1"), std::span(&node, 1), 1);
}

/// A hold on a claim of one share, its leases, and nobody around it.
struct hold_fixture : detail::hold_host {
  manual_clock clock;
  manual_timers timers{clock};
  fake_topology server{clock, timers};
  seeded_random random{1};
  config settings;
  detail::surroundings around{clock, timers, server, random, settings};
  detail::releases freeing{around};
  detail::unlock_patience patience{around};
  detail::watchdog renewals{around, [](detail::claim& c, error_code why) { c.holder()->lose(why); }};
  detail::open_calls calls;
  const detail::hold_services services{around, renewals, freeing, patience, calls, {}};
  const std::shared_ptr<std::atomic<bool>> closed = services.closed_flag;
  const std::shared_ptr<detail::claim> on = make_claim(clock, closed);
  const std::shared_ptr<detail::hold> h = make_hold(on);
  std::vector<std::shared_ptr<detail::lease_record>> records;

  hold_fixture() = default;
  ~hold_fixture() { h->leave_host(); }

  std::shared_ptr<detail::hold> make_hold(std::shared_ptr<detail::claim> c) {
    return std::make_shared<detail::hold>(std::move(c), owner(), false, std::nullopt, clock.now(), services, *this);
  }
  bool extend(detail::time_point until) { return on->confirm(on->sole_share(), until); }
  detail::lease_record& lease(detail::terms t) { return lease(h, t); }
  detail::lease_record& lease(const std::shared_ptr<detail::hold>& of, detail::terms t) {
    records.push_back(std::make_shared<detail::lease_record>(of, t, clock.now(), nullptr));
    of->add(*records.back());
    return *records.back();
  }
  /// Releases the hold by the unlock of its only lease.
  void release(const std::shared_ptr<detail::hold>& which) {
    which->give_up(lease(which, {.ttl = std::chrono::seconds(1), .renew = false, .max_hold = {}}), {});
  }

 private:
  void ended(detail::hold&) override {}
  void forget(detail::hold&) override {}
  void queue(std::shared_ptr<detail::acquisition>) override {}
  void release_begins() override {}
  void release_ends() override {}
};

}  // namespace holdfast::test
