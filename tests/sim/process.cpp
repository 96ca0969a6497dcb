// SPDX-License-Identifier: BSL-1.0
#include "sim/process.hpp"

namespace holdfast::sim {

void process::run() {
  if (paused_) return;
  do {
    queue_.run_due(time_.now());
    io_.restart();
  } while (io_.poll() != 0);
}

}  // namespace holdfast::sim
