// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>

#include <cstddef>
#include <string_view>

namespace holdfast {

/// State of a keep_running():
/// | state       | lock     | meaning; → next states                                                             |
/// |-------------|----------|------------------------------------------------------------------------------------|
/// | stopped     | not held | not begun, or ended; → waiting                                                     |
/// | waiting     | not held | waits for its lock; → running, backing_off, stopped                                |
/// | running     | held     | its body runs under the lease; → pausing, backing_off, stopped                     |
/// | pausing     | not held | its body has returned, and runs again after keep_options::pause; → waiting, stopped |
/// | backing_off | not held | the lock, its lease or the body has failed; → waiting, stopped                     |
enum class worker_state : unsigned char { stopped, waiting, running, pausing, backing_off };
inline constexpr std::size_t worker_states = static_cast<std::size_t>(worker_state::backing_off) + 1;
/// The name of a state: "backing_off".
HOLDFAST_EXPORT std::string_view to_string(worker_state) noexcept;

/// The end of one run of a body.
enum class run_outcome : unsigned char {
  returned,
  threw,
  lost,       ///< the lease ended before the body, or the client did
  cancelled,  ///< from outside, or its context ended
};
inline constexpr std::size_t run_outcomes = static_cast<std::size_t>(run_outcome::cancelled) + 1;
/// The name of an outcome: "returned".
HOLDFAST_EXPORT std::string_view to_string(run_outcome) noexcept;

}  // namespace holdfast
