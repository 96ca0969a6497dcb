// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <string>

#include <holdfast/owner.hpp>

namespace holdfast::detail {

/// Pure: the owners that may still lock while a client drains, because they hold, and the lines in which they wait.
class last_holders {
 public:
  bool empty() const noexcept { return holders_.empty(); }
  bool contains(const holdfast::owner& who) const { return holders_.contains(who); }
  /// They have one hold more.
  void add(const holdfast::owner& who) { ++holders_[who].holds; }
  /// They may be in the line of this name from now on. They hold.
  void waits(const holdfast::owner& who, const std::string& name);
  /// They have one hold less. Answers the names in whose lines they may be, if it was their last.
  std::set<std::string> remove(const holdfast::owner& who);

 private:
  struct holder {
    std::size_t holds = 0;
    std::set<std::string> lines;
  };
  std::map<holdfast::owner, holder> holders_;
};

}  // namespace holdfast::detail
