// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstdint>

#include <holdfast/error.hpp>
#include <holdfast/keep_options.hpp>
#include <holdfast/worker_state.hpp>

namespace holdfast::detail {

/// Pure: the next action of a worker after each outcome.
///
/// Decision: an error that a person can mend at the server is retried, such as a missing permission. A worker waits for
/// weeks beside its peers. If a password that is wrong for a minute ended it, all of them would end together.
class restart_rules {
 public:
  enum class act { take_lock, finish, fail };
  /// take_lock: after a pause in `next`, from `shortest` to `longest`. Any other act: the worker is stopped.
  struct decision {
    act then{};
    worker_state next{};
    std::chrono::nanoseconds shortest{}, longest{};
    friend bool operator==(const decision&, const decision&) = default;
  };

  /// Throws error: invalid_argument.
  explicit restart_rules(const keep_options& options);

  /// lock() or a pause has failed.
  decision wait_failed(const error_code& why);
  /// `ran`: the time since the grant.
  decision run_ended(run_outcome outcome, std::chrono::nanoseconds ran);
  /// The failures that count for the next backoff.
  std::uint64_t failures_in_row() const noexcept { return failures_; }

 private:
  decision back_off();

  const restart_policy policy_;
  const std::chrono::nanoseconds pause_, first_backoff_, cap_;
  std::uint64_t failures_ = 0;
};

/// True: the same lock() may succeed later, without a change of the program.
bool may_mend(const error_code& why) noexcept;

}  // namespace holdfast::detail
