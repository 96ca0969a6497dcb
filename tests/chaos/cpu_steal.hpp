// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "chaos/history.hpp"

namespace holdfast::chaos {

/// The CPU steal of each processor since the start, by the text of /proc/stat: the hypervisor ran something else for
/// that long. Empty where the kernel does not count it.
std::vector<std::chrono::nanoseconds> cpu_steal_times(std::string_view proc_stat);

/// Writes the CPU steal to a history of its own, in a thread, while it lives. A processor that was stolen stops its
/// processes and its timers for that long.
class cpu_steal_watch {
 public:
  explicit cpu_steal_watch(const std::string& history_path);

 private:
  void watch(const std::stop_token& end);

  history log_;
  std::jthread thread_;
};

}  // namespace holdfast::chaos
