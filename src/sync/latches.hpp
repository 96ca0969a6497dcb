// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>

#include "sync/command/handlers.hpp"
#include "sync/hold/engine_parts.hpp"
#include "sync/line/acquisition.hpp"
#include "sync/lookout/lookout.hpp"

namespace holdfast::detail {

/// The latches of one client: its calls that change a count, and its callers who wait until one is 0.
///
/// A call that changes a count leaves a mark in Redis under a field of its own, so a repeated command changes nothing.
/// A count-down is repeated until Redis has answered, as the release of a lock is, and by the same class.
class latches final : private release_host {
 public:
  /// How long a count-down is repeated after its caller's time is over.
  static constexpr milliseconds repeated_for{30'000};

  explicit latches(const engine_parts& parts) noexcept : parts_(parts) {}
  latches(const latches&) = delete;
  latches& operator=(const latches&) = delete;

  /// `field`: of the mark, never used before. False: the count was set before, by another call.
  void try_set(const shared_keys& keys, std::uint32_t count, const owner_field& field, answer_handler<bool> done);
  /// Unconfirmed: no answer in time, and the call goes on. close() waits for it.
  void count_down(const shared_keys& keys, std::uint32_t n, const owner_field& field, done_handler done);
  void count(const shared_keys& keys, answer_handler<std::uint32_t> done) const;
  /// True: the latch is open. False: it was not, until the deadline.
  cancellable_ptr wait(const shared_keys& keys, time_point deadline, answer_handler<bool> done);

  /// Callers who wait get shutting_down, and from now on nobody may wait.
  void drain();
  /// The same. The engine refuses all calls, and ends the releases.
  void close();
  bool idle() const noexcept { return waiting_.empty(); }

 private:
  void release_begins() override {}
  departure departs(const lock_keys&, bool) override { return {}; }
  bool keeps_place(const lock_keys&) const override { return false; }
  void release_ends(const release_end&) override {}

  milliseconds mark_ttl() const noexcept { return 2 * (parts_.env.settings.command_timeout + repeated_for); }

  const engine_parts& parts_;
  lookouts waiting_;
  bool draining_ = false;
};

}  // namespace holdfast::detail
