// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <string>

#include <holdfast/owner_id.hpp>

namespace holdfast::detail {

/// Pure: the owners that may still lock while a client drains, because they hold, and the lines in which they wait.
class last_holders {
 public:
  bool empty() const noexcept { return holders_.empty(); }
  bool contains(owner_id owner) const { return holders_.contains(owner); }
  /// They have one hold more.
  void add(owner_id owner) { ++holders_[owner].holds; }
  /// They may be in the line of this name from now on. They hold.
  void waits(owner_id owner, const std::string& name);
  /// They have one hold less. Answers the names in whose lines they may be, if it was their last.
  std::set<std::string> remove(owner_id owner);

 private:
  struct holder {
    std::size_t holds = 0;
    std::set<std::string> lines;
  };
  std::map<owner_id, holder> holders_;
};

}  // namespace holdfast::detail
