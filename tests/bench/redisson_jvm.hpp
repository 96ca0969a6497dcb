// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "support/child_process.hpp"

namespace holdfast::bench {

/// Redisson itself: a JVM whose threads contend for one lock (redisson/src/main/java). It ends with this object.
class redisson_jvm {
 public:
  using milliseconds = std::chrono::milliseconds;
  struct work {
    std::string url, name;
    std::string witness;  // a file that begins with the two counters of the witness
    int threads = 1;
    milliseconds hold{}, think{};
  };
  struct result {
    double longest_wait = 0;     // in seconds
    std::vector<long> acquired;  // by each thread
  };

  /// Fetches and builds it with Maven. Why it cannot be had here; empty if it is there.
  static std::string missing();

  /// Returns when its threads are warm, by contention for another name.
  explicit redisson_jvm(const work&);

  /// The shift of its threads: once.
  void work_for(milliseconds how_long, milliseconds begins_in);
  /// Throws not_finished if it ended without a result, or has none at the deadline.
  result result_until(std::chrono::steady_clock::time_point deadline);

 private:
  std::string line_until(std::chrono::steady_clock::time_point deadline);

  test::child_process java_;
  const std::size_t threads_;
};

}  // namespace holdfast::bench
