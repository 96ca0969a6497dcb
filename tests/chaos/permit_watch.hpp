// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <thread>
#include <vector>

#include "chaos/history.hpp"

namespace holdfast::chaos {

/// Looks a hundred times a second at the permits of a semaphore, in a thread, while it lives: those that are left and
/// those that are out, by one script. Writes down each sum that is not the number of permits, and at the end how often
/// it looked. A counter that is missing is no sum: the next acquire sets it.
///
/// It looks at one server after the other. A replica has the writes of a script together, so a failover forgets all of
/// them or none. A server whose slot moves refuses the script, unless it has both keys.
class permit_watch {
 public:
  permit_watch(const std::string& history_path, std::vector<std::string> servers, std::string semaphore,
               long long total);

 private:
  void watch(const std::stop_token& end);

  history log_;
  const std::vector<std::string> servers_;
  const std::string semaphore_;
  const long long total_;
  std::jthread thread_;
};

}  // namespace holdfast::chaos
