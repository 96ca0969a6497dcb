// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include <holdfast/worker_state.hpp>

#include "base/lease_clock.hpp"
#include "sync/command/environment.hpp"
#include "sync/command/handlers.hpp"
#include "sync/line/acquisition.hpp"

namespace holdfast::detail {

/// A change of one worker's state.
struct worker_move {
  std::uint64_t number = 0;  // from 1 on
  worker_state to{};
  std::string name{};  // of the lock; empty: not known yet
};

/// A worker as the observer counts it.
struct counted_worker {
  std::string_view lock_kind{};  // lives as long as the program
  worker_move last{};
};
using counted_worker_ptr = std::shared_ptr<counted_worker>;

/// The workers of one client, on its strand: their pauses, and their states for the observer. A worker itself lives
/// with its caller.
class worker_table {
 public:
  explicit worker_table(environment& env) noexcept : env_(env) {}
  worker_table(const worker_table&) = delete;
  worker_table& operator=(const worker_table&) = delete;
  ~worker_table();

  /// Calls `done` after a random time from `shortest` to `longest`; with shutting_down as soon as the client drains or
  /// closes.
  cancellable_ptr pause(nanoseconds shortest, nanoseconds longest, done_handler done);
  /// Ignores a move that a later one has overtaken on its way to the strand.
  void move(const counted_worker_ptr& worker, worker_move to);
  void run_ended(const counted_worker& worker, std::string_view name, run_outcome outcome) const;

  /// Ends the pauses, and refuses others.
  void drain();
  /// The same, and the observer is told that each worker has left its state.
  void close();

 private:
  class pending_pause;

  void count(measurement_kind kind, const counted_worker& worker) const;

  environment& env_;
  std::list<std::shared_ptr<pending_pause>> pauses_;
  std::list<counted_worker_ptr> counted_;  // those that are not stopped
  bool drains_ = false, closed_ = false;
};

}  // namespace holdfast::detail
