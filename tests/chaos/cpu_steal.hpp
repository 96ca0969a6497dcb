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

/// For how long each processor of this machine was taken away by the one that it runs on, since its start, by the text
/// of /proc/stat; empty where that says nothing of it.
std::vector<std::chrono::nanoseconds> stolen_times(std::string_view proc_stat);

/// Writes down what is stolen while it lives, in a thread and a history of its own: a processor that comes back has
/// been away for as long, and with it the processes and the timers that it had.
class stolen_time_watch {
 public:
  explicit stolen_time_watch(const std::string& history_path);

 private:
  void watch(const std::stop_token& end);

  history log_;
  std::jthread thread_;
};

}  // namespace holdfast::chaos
