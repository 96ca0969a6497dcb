// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/config.hpp>
#include <holdfast/observer.hpp>

#include "base/lease_clock.hpp"
#include "base/random.hpp"
#include "base/timers.hpp"
#include "protocol/kind.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

class hold;

/// An event about a hold, whose id is made where it is told.
struct hold_event {
  event what;
  owner_field id{};
};

/// Clock, timers, servers and randomness, which are passed in and never fetched; and the settings and the observer that
/// all share.
struct surroundings {
  const clock& time;
  timers& alarms;
  topology& servers;
  random_source& random;
  const config& settings;

  time_point now() const noexcept { return time.now(); }

  void report(const event& e) const {
    if (settings.observer) settings.observer->on(e);
  }
  void report(hold_event e) const;
  void report(event::kind what, const hold& h, error_code reason = {}, std::string_view detail = {}) const;

  /// Sends what nobody withdraws; what the call refers to lives until the answer.
  void run(const call& what, const delivery& how, topology::handler done) const;
};

/// How a call ended that got no lease: cancelled and closed are no failures.
event::kind end_of_call(const error_code& failed) noexcept;

/// "lock 'name': cause", for texts that a person reads.
std::string about(std::string_view name, std::string_view cause);

}  // namespace holdfast::detail
