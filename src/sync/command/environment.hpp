// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/config.hpp>
#include <holdfast/observer.hpp>

#include "base/assert.hpp"
#include "base/block_pool.hpp"
#include "base/function.hpp"
#include "base/lease_clock.hpp"
#include "base/random.hpp"
#include "base/timers.hpp"
#include "protocol/kind.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

class grant_notes;
class push_demand;
class script_sender;
class wait_notices;

/// An event about a hold. The text of its id is made in report(), and only if the observer wants ids.
struct hold_event {
  event content;
  const owner_field* id = nullptr;  // null: the event has no id
  std::uint32_t passes = 0;
  time_point at{};  // of a hold
};

/// The dependencies of every class on the strand: clock, timers, servers, randomness, settings and observer. They are
/// passed in and never fetched, so that tests can replace each of them.
struct environment {
  const clock& time;
  timers& alarms;
  topology& servers;
  random_source& random;
  const config& settings;
  publish_word word = publish_word::publish;
  const script_sender* sender = nullptr;  // chosen by the engine
  wait_notices* notices = nullptr;        // null if there is an observer
  grant_notes* notes = nullptr;           // null without config::notes
  push_demand* pushes = nullptr;          // made by the engine
  const bool ids = !settings.observer || settings.observer->wants_ids();
  const block_pool_ptr blocks{new block_pool};
  bool message_withheld = false;  // the event was reported

  time_point now() const noexcept { return time.now(); }

  void report(const event& event) const {
    if (settings.observer) settings.observer->on(event);
  }
  /// Callers check for an observer first, so that no event is made for nobody.
  void report(hold_event&& event) const {
    HOLDFAST_ASSERT(settings.observer);
    if (ids && event.id) return report_with_id(event);
    settings.observer->on(event.content);
  }
  void count(measurement_kind kind, const lock_keys& keys) const {
    if (settings.observer) settings.observer->measured({.kind = kind, .lock_kind = keys.of.name, .name = keys.name});
  }

  /// Reports once per client that a release was not allowed to notify waiters.
  void note_withheld_message(const redis::outcome& outcome);

  /// Asks whether `wanted` replicas have the change of `key` that `server` has answered. The grant expires at `valid`.
  /// `then` gets the reason why the grant does not count, or nothing if enough replicas have it in time.
  void when_replicated(std::string_view key, unsigned wanted, std::uint64_t server, time_point valid,
                       function<void(std::optional<redis::failure>)> then) const;

 private:
  void report_with_id(hold_event& event) const;
};

/// Why `had` replicas are not enough. Empty: they are. `failed`: the number is unknown, for this reason.
std::optional<redis::failure> too_few_replicas(const std::optional<redis::failure>& failed, unsigned had,
                                               unsigned wanted);

/// The event of a call that got no lease. A cancelled call and a closed client are no failures.
event_kind end_of_call(const std::optional<redis::failure>& failed) noexcept;

/// "lock 'name': cause", for texts that a person reads.
std::string about(std::string_view name, std::string_view cause);

}  // namespace holdfast::detail
