// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <holdfast/worker_monitor.hpp>

#include "api/core.hpp"
#include "base/lease_clock.hpp"

namespace holdfast::detail {

/// The state of one worker, which any thread may read.
class worker_record {
 public:
  /// A worker begins. `client`: its clock is read, also after its end. Throws invalid_argument if another one has not
  /// ended.
  void begin(const std::shared_ptr<core>& client);
  void enter(worker_state state);
  void begin_run(std::string_view name);
  void note_failure(std::string text, const error_code& code, std::uint64_t in_row);
  void note_success();
  void stop() noexcept;

  worker_status status() const;
  /// The time in the present state.
  std::chrono::nanoseconds elapsed() const;

 private:
  std::chrono::nanoseconds elapsed_now() const;  // guarded

  mutable std::mutex guard_;
  std::shared_ptr<core> client_;  // null: not begun
  worker_status now_;             // its time is in since_
  time_point since_{};
};

}  // namespace holdfast::detail
