// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <string>

#include <holdfast/owner_id.hpp>

namespace holdfast::detail {

/// Pure: the owners that may still lock while a client drains, and the lines in which they wait.
///
/// Decision: drain() lets owners that hold a lock finish, nested locks included. The data that a lock guards may be
/// half changed. Everyone else is refused: a task that holds nothing looks like a new one, and a waiter may wait for
/// long. An owner counts by its holds, not by its leases, so that a last unlock that waits for its turn is answered as
/// usual.
class last_holders {
 public:
  bool empty() const noexcept { return holders_.empty(); }
  bool contains(owner_id owner) const { return holders_.contains(owner); }
  /// The owner has one hold more.
  void add(owner_id owner) { ++holders_[owner].holds; }
  /// The owner holds, and may be in the line of this name from now on.
  void waits(owner_id owner, const std::string& name);
  /// The owner has one hold less. If it was the last one, returns the names in whose lines the owner may wait.
  std::set<std::string> remove(owner_id owner);

 private:
  struct holder {
    std::size_t holds = 0;
    std::set<std::string> lines;
  };
  std::map<owner_id, holder> holders_;
};

}  // namespace holdfast::detail
