// SPDX-License-Identifier: BSL-1.0
#include <holdfast/worker_state.hpp>

namespace holdfast {

std::string_view to_string(worker_state state) noexcept {
  switch (state) {
    case worker_state::stopped: return "stopped";
    case worker_state::waiting: return "waiting";
    case worker_state::running: return "running";
    case worker_state::pausing: return "pausing";
    case worker_state::backing_off: return "backing_off";
  }
  return "unknown";
}

std::string_view to_string(run_outcome outcome) noexcept {
  switch (outcome) {
    case run_outcome::returned: return "returned";
    case run_outcome::threw: return "threw";
    case run_outcome::lost: return "lost";
    case run_outcome::cancelled: return "cancelled";
  }
  return "unknown";
}

}  // namespace holdfast
