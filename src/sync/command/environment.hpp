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

class script_sender;
class wait_notices;

/// An event about a hold, whose id is made where it is told.
struct hold_event {
  event content;
  const owner_field* id = nullptr;  // null: it has none
  std::uint32_t passes = 0;
  time_point at{};  // of a hold
};

/// Clock, timers, servers and randomness, which are passed in and never fetched; and the settings and the observer that
/// all share.
struct environment {
  const clock& time;
  timers& alarms;
  topology& servers;
  random_source& random;
  const config& settings;
  publish_word word = publish_word::publish;
  const script_sender* sender = nullptr;  // the engine chooses it
  wait_notices* notices = nullptr;        // where nobody observes
  const bool ids = !settings.observer || settings.observer->wants_ids();
  const block_pool_ptr blocks{new block_pool};
  bool message_withheld = false;  // the observer knows

  time_point now() const noexcept { return time.now(); }

  void report(const event& event) const {
    if (settings.observer) settings.observer->on(event);
  }
  /// Whoever makes such an event asks first whether there is an observer.
  void report(hold_event&& event) const {
    HOLDFAST_ASSERT(settings.observer);
    if (ids && event.id) return report_with_id(event);
    settings.observer->on(event.content);
  }
  void count(measurement_kind kind, const lock_keys& keys) const {
    if (settings.observer) settings.observer->measured({.kind = kind, .lock_kind = keys.of.name, .name = keys.name});
  }

  /// Tells the observer, the first time, that a release was not allowed to tell waiters.
  void note_withheld_message(const redis::outcome& outcome);

  /// Asks whether so many replicas have what this server has answered about `key`, which is good for anything until
  /// `valid`. `then` hears why it does not count; nothing where enough have it in time.
  void when_replicated(std::string_view key, unsigned wanted, std::uint64_t server, time_point valid,
                       function<void(std::optional<redis::failure>)> then) const;

 private:
  void report_with_id(hold_event& event) const;
};

/// Why what so many replicas have does not count; nothing where they are enough. `error`: why that is not known.
std::optional<redis::failure> too_few_replicas(const std::optional<redis::failure>& failed, unsigned had,
                                               unsigned wanted);

/// How a call ended that got no lease: cancelled and closed are no failures.
event_kind end_of_call(const error_code& failed) noexcept;

/// "lock 'name': cause", for texts that a person reads.
std::string about(std::string_view name, std::string_view cause);

}  // namespace holdfast::detail
