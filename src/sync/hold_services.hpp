// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <memory>

#include "base/birthplace.hpp"
#include "sync/open_calls.hpp"
#include "sync/releases.hpp"
#include "sync/surroundings.hpp"
#include "sync/unlock_patience.hpp"
#include "sync/watchdog.hpp"

namespace holdfast::detail {

class lease_home;

/// The parts of an engine that holds, registry and questions use. A member of the engine: it outlives every handler of
/// the strand.
struct hold_services {
  surroundings& around;
  watchdog& renewals;
  releases& freeing;
  unlock_patience& patience;
  open_calls& calls;
  const std::weak_ptr<lease_home> leases_home;
  /// Setting it ends all holds, from any thread.
  const std::shared_ptr<std::atomic<bool>> closed_flag = std::make_shared<std::atomic<bool>>(false);
  const birthplace here{};

  /// Also in a child process: what was copied by fork() is the parent's.
  bool closed() const noexcept { return closed_flag->load(std::memory_order_acquire) || here.elsewhere(); }
  void watch_links() const { around.servers.keep_watch(!renewals.idle()); }
};

}  // namespace holdfast::detail
