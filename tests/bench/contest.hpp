// SPDX-License-Identifier: BSL-1.0
// Honest contention: processes whose tasks want one name, hold it for a moment and think before they want it again.
#pragma once
#include <chrono>

namespace holdfast::bench {

/// Of all processes, to connect before they start at once.
inline constexpr std::chrono::milliseconds get_ready{500};

/// Who contends, and how.
struct crew {
  int processes;
  bool turns;         // config::turns
  int redissons = 0;  // of the processes: so many have Redisson's protocol, and all their tasks
  std::chrono::microseconds hold{1'000}, think{3'000};
  int all_tasks = 16;
  bool jvm = false;      // each of the redissons is Redisson itself
  bool threads = false;  // our tasks are threads
  bool fair = false;     // our tasks want a fair_mutex
  int tasks() const { return all_tasks / processes; }
  /// They hold for no time, and do not think.
  bool tight() const { return (hold + think).count() == 0; }
};

/// What came of it.
struct contended {
  double rate = 0, commands = 0, scripts = 0, least_share = 0;
  double own_share = 0;                     // our processes' share of what is fair
  double longest_wait = 0, own_wait = 0;    // in seconds: of anybody; of our tasks
  double longest_burst = 0;                 // seconds for which one process kept it
  double most_turns = 0;                    // of one process between two of another
  double hand_over = 0, own_hand_over = 0;  // medians in us: to one who waits in another process; in the same
  double two_trips = 0;                     // the same of a process that is idle, where nobody is tight
};

contended run(crew who, std::chrono::milliseconds how_long);

/// Acquisitions per second of one task that holds as often as it can without a lock.
double ideal_rate(std::chrono::microseconds hold, std::chrono::milliseconds how_long);

}  // namespace holdfast::bench
