// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

namespace holdfast::bench {

/// CPU time that a process has used, in µs: exact, unlike wall time on a busy machine.
inline double cpu_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/schedstat");
  double nanoseconds = 0;
  in >> nanoseconds;
  return nanoseconds / 1000;
}

inline double own_cpu() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto us = [](const timeval& t) { return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec); };
  return us(used.ru_utime) + us(used.ru_stime);
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values.at(values.size() / 2);
}

/// What a run of many pairs cost, all for one pair.
struct cost {
  double p50_us = 0;     // wall time; 0 where pairs overlap
  double rate = 0;       // pairs a second
  double client_us = 0;  // CPU
  double server_us = 0;
};

/// Measures from its construction to cost_of().
class meter {
 public:
  explicit meter(pid_t server) : server_(server) {}
  cost cost_of(std::size_t pairs, std::vector<double> laps_us = {}) const {
    const auto n = static_cast<double>(pairs);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start_;
    return {laps_us.empty() ? 0 : median(std::move(laps_us)), n / wall.count(), (own_cpu() - client_) / n,
            (cpu_of(server_) - used_) / n};
  }

 private:
  pid_t server_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double client_ = own_cpu(), used_ = cpu_of(server_);
};

}  // namespace holdfast::bench
