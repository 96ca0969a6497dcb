// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <map>
#include <string>

#include "sim/deployment.hpp"

namespace holdfast::sim {

/// The faults outside the guarantee: each may take locks away, and none may do more.
class excuses {
 public:
  explicit excuses(scheduler& plan) : plan_(plan) {}

  /// A fault has been at this name, or at all (empty); `published`: its waiters have a message.
  void add(const std::string& name, bool published) {
    (name.empty() ? all_broken_ : broken_[name]) = plan_.now();
    if (!published) freed_silently_[name] = plan_.now();
  }
  /// A server has lost all its data: the only server there is, or one of several.
  void data_lost(bool of_several) { (of_several ? forgotten_ : all_broken_) = plan_.now(); }
  /// A waiter finds it by its poll: it has no message.
  void freed_silently(const std::string& name) { freed_silently_[name] = plan_.now(); }

  /// When a fault outside the guarantee last took a claim on this name away.
  time_point broken_at(const std::string& name) const {
    const auto found = broken_.find(name);
    return found == broken_.end() ? all_broken_ : std::max(found->second, all_broken_);
  }
  /// The same, or a server of several has forgotten it.
  time_point broken_or_forgotten_at(const std::string& name) const { return std::max(broken_at(name), forgotten_); }
  /// When this name last became free without a message.
  time_point last_silence_about(const std::string& name) {
    return std::max({freed_silently_[name], all_broken_, forgotten_});
  }

 private:
  scheduler& plan_;
  std::map<std::string, time_point> broken_, freed_silently_;
  time_point all_broken_{};  // in silence
  time_point forgotten_{};
};

}  // namespace holdfast::sim
