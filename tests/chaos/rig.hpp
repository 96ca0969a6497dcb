// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "chaos/campaign.hpp"
#include "chaos/faults.hpp"
#include "chaos/history.hpp"
#include "support/real_redis.hpp"

namespace holdfast::chaos {

/// What servers do on a machine that is too slow for them explains nothing: the round does not count.
struct too_slow : std::runtime_error {
  using runtime_error::runtime_error;
};

/// Servers with the locks, of which another may become the primary. One thread.
class rig {
 public:
  virtual ~rig() = default;

  /// For holdfast::config::url.
  virtual std::string url() const = 0;
  /// Those that live.
  virtual std::vector<test::real_redis*> primaries() = 0;
  /// Primaries, replicas and sentinels: whom a client may be connected to.
  virtual std::vector<test::real_redis*> everybody() = 0;

  virtual void begin(fault_kind, dice&) = 0;
  /// To be called all the time: to go on with a fault, and to see what comes of it.
  virtual void watch() = 0;
  /// Returns when the fault is over. Writes down what the servers may have forgotten by it: what the one that was
  /// replaced had answered from `since` on, at which instant the next one had all, until `until`, when it answered
  /// nobody any more; `told`: when every client that follows could know. With the slots, where there are any.
  virtual void end(fault_kind) = 0;
};

/// Whether a failover that was ordered has been given up, which nobody tells: an operator asks again.
inline bool ask_again(std::chrono::steady_clock::time_point& asked) {
  const auto now = std::chrono::steady_clock::now();
  if (now - asked < std::chrono::seconds(6)) return false;
  asked = now;
  return true;
}

std::unique_ptr<rig> make_sentinel_rig(history&);
std::unique_ptr<rig> make_cluster_rig(history&);

}  // namespace holdfast::chaos
