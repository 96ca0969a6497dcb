// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <holdfast/observer.hpp>

#include "metrics/histogram.hpp"

namespace holdfast::detail {

inline constexpr std::array call_ends{event_kind::acquired, event_kind::reentered, event_kind::not_acquired,
                                      event_kind::acquire_failed, event_kind::acquire_cancelled};
inline constexpr std::array hold_ends{event_kind::released, event_kind::passed, event_kind::release_failed,
                                      event_kind::lost, event_kind::closed};
/// The events with a smaller number end a call or a hold.
inline constexpr std::size_t ends = call_ends.size() + hold_ends.size();

/// What is counted of the locks that have one set of labels. Any thread.
struct lock_series {
  std::array<durations, ends> times;  // waited or held, by the number of the event
  std::array<counter, loss_causes> losses;
  counter waiters, pushed;
  std::array<counter, worker_states> workers;
  std::array<counter, run_outcomes> runs;

  const durations& waits(std::size_t index) const noexcept { return times[index]; }
  const durations& holds(std::size_t index) const noexcept { return times[call_ends.size() + index]; }

  /// There are workers, or were. Most locks have none, and no lines for them.
  bool has_workers() const noexcept {
    const auto counted = [](const counter& each) { return each.get() != 0; };
    return std::any_of(workers.begin(), workers.end(), counted) || std::any_of(runs.begin(), runs.end(), counted);
  }
  /// An event that ends a call or a hold: one with a number of `times`, which is n.
  void count(std::size_t index, const event& event) noexcept {
    times[index].add((index < call_ends.size() ? event.waited : event.held).count());
    if (index != static_cast<std::size_t>(event_kind::lost)) return;
    const auto why = static_cast<std::size_t>(event.cause);
    losses[why < losses.size() ? why : 0].add();
  }
  /// The ends first: a hold that ends meanwhile must not be missing where it has begun.
  std::int64_t held() const noexcept {
    std::int64_t ended = 0;
    for (std::size_t n = 0; n < hold_ends.size(); ++n) ended += holds(n).count();
    return waits(0).count() - ended;
  }
};

// count() finds a histogram by the number of its event.
constexpr bool in_their_order() {
  for (std::size_t n = 0; n < call_ends.size(); ++n)
    if (static_cast<std::size_t>(call_ends[n]) != n) return false;
  for (std::size_t n = 0; n < hold_ends.size(); ++n)
    if (static_cast<std::size_t>(hold_ends[n]) != call_ends.size() + n || !ends_hold(hold_ends[n])) return false;
  return true;
}
static_assert(in_their_order() && call_ends[0] == event_kind::acquired);

}  // namespace holdfast::detail
