// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promises of a semaphore:
///   - After each script the permits that are left and those that are out add up to all, if the counter is there. A
///     slot moves key by key, so a fault may take one of the two keys: a cluster is not judged by that.
///   - The first waiter of a client gets its permits within a journey, if so many are left and no other client's waiter
///     has closed the door. After a trouble it gets them within retries and reconnection.
///   - A first waiter for several permits closes the door when another client has got permits before it.
///   - Nobody gets a new permit while the door of another waiter is closed.
class permit_judge {
 public:
  explicit permit_judge(evidence& known) : known_(known) {}

  /// The machine has granted these permits by one script.
  void granted(std::size_t machine, const std::string& name, const std::vector<std::string>& ids);
  /// A script has run there.
  void ran(std::size_t machine);
  /// After each instant, before anybody looks at claims.
  void excuse_moves();
  /// Every glance.
  void look();

 private:
  /// The state of a semaphore at the node.
  struct state {
    long long left;  // also permits that have ended
    const std::string* door;
  };
  /// Nothing: a fault has put something else there.
  std::optional<state> state_of(const semaphore&) const;
  /// `use(id, call, semaphore)` for the first waiter of each client.
  template <class Use>
  void visit_first_waiters(Use use);
  bool is_late(const call_record&, const semaphore&, time_point since, nanoseconds allowed);

  evidence& known_;
  std::map<std::uint64_t, time_point> owed_since_, passed_over_since_;  // of the first waiters, by call
  std::set<std::string> granted_;                                       // ids: the command of one may be sent again
};

}  // namespace holdfast::sim
