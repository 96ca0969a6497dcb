// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/config.hpp>
#include <holdfast/observer.hpp>

#include "base/function.hpp"
#include "base/lease_clock.hpp"
#include "base/random.hpp"
#include "base/timers.hpp"
#include "protocol/protocol.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// What is passed in, never fetched: clock, timers, servers, randomness; and the settings and the observer that all share.
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

  /// Sends a script by digest, and once by text where the server does not know it and `wanted` (if set) still says so.
  void run(script_call call, time_point deadline, topology::handler done, function<bool()> wanted = {}) const;
};

/// "lock 'name': cause", for texts that a person reads.
std::string about(std::string_view name, std::string_view cause);

}  // namespace holdfast::detail
