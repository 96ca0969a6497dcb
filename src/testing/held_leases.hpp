// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <map>
#include <memory>
#include <string>

#include <holdfast/observer.hpp>

#include "base/lease_clock.hpp"

namespace holdfast::testing {

using detail::time_point;

/// The holds of all clients, by the events of their observers.
class held_leases {
 public:
  void hear(const event& event, time_point now);
  /// "2 leases are still held: 'name' (id) for 30000 ms, …"; empty: none.
  std::string text(time_point now) const;

 private:
  struct grant {
    std::string name;
    time_point since;
  };
  std::map<std::string, grant, std::less<>> by_id_;
};

}  // namespace holdfast::testing
