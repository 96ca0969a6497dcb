// SPDX-License-Identifier: BSL-1.0
#include "sim/process.hpp"

namespace holdfast::sim {

bool process::behind() const { return queue_.earliest() && *queue_.earliest() <= time_.now(); }

void process::run() {
  if (paused_) return;
  if (behind() && order_.next() % 2 == 0) poll();
  do {
    queue_.run_due(time_.now());
  } while (poll());
}

bool process::poll() {
  io_.restart();
  return io_.poll() != 0;
}

}  // namespace holdfast::sim
