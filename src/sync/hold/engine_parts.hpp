// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>

#include "sync/claim/validity.hpp"
#include "sync/command/environment.hpp"
#include "sync/command/open_calls.hpp"
#include "sync/release/releases.hpp"
#include "sync/release/unlock_time_budget.hpp"
#include "sync/renewal/watchdog.hpp"

namespace holdfast::detail {

class lease_home;

/// The parts of an engine that holds, registry and questions use. It is a member of the engine, and outlives every
/// handler of the strand.
struct engine_parts {
  environment& env;
  watchdog& renewals;
  releases& freeing;
  unlock_time_budget& unlock_budget;
  open_calls& calls;
  const std::weak_ptr<lease_home> leases_home;
  const client_state_ptr client;

  bool closed() const noexcept { return client->over(); }
};

}  // namespace holdfast::detail
