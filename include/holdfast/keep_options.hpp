// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>

namespace holdfast {
using std::chrono::milliseconds;

class worker_monitor;

/// Whether a body that has ended runs again.
enum class restart_policy : unsigned char {
  always,      ///< until the client drains or ends, or a cancellation comes
  on_failure,  ///< until it returns
  never,       ///< one run. Only the wait for the lock is repeated
};

/// Terms of a keep_running(). Trivially destructible: you can brace it inside co_await on g++ 12.
struct keep_options {
  restart_policy restart = restart_policy::always;
  /// From a body that returned to the next wait for the lock, which other processes may take meanwhile. 0 to 24 h.
  milliseconds pause{100};
  /// After the n-th failure in a row: a random time from half of min(cap, first · 2^(n-1)) to all of it. `first`: 10 ms
  /// to `cap`. `cap`: 2 s to 24 h. So ten failures in a row are followed by at most one try a second.
  milliseconds first_backoff{100}, backoff_cap{30'000};
  /// Shows its state to other threads. The call copies it. Null: nobody looks.
  const worker_monitor* monitor = nullptr;
};

}  // namespace holdfast
