// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "chaos/history.hpp"

namespace holdfast::chaos {

/// The time for which processors of this machine were taken away by the one that it runs on, since its start and of all
/// together, by the text of /proc/stat; empty where that says nothing of it.
std::optional<std::chrono::nanoseconds> stolen_time(std::string_view proc_stat);

/// Writes down what is stolen while it lives, in a thread and a history of its own: for as long a process may have stood
/// still that nobody stopped.
class stolen_time_watch {
 public:
  explicit stolen_time_watch(const std::string& history_path);

 private:
  void watch(const std::stop_token& end);

  history log_;
  std::jthread thread_;
};

}  // namespace holdfast::chaos
