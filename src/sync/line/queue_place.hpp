// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <optional>

#include "base/lease_clock.hpp"
#include "base/random.hpp"
#include "protocol/call.hpp"

namespace holdfast::detail {

/// The place of this client in the queue of one lock in Redis, as far as the client knows it. Pure. It says how the
/// next attempt asks, and when the first waiter asks after a message or an own release.
///
/// The queue has the clients that wait to write, by arrival, and those that wait to read. The first waiter of a line
/// stands there for its client. A client whose turn to write has come is called: by name, on a channel of its own.
///
/// Decision: the queue orders clients, and owns nothing. A wrong idea of the place costs order or time, and never
/// exclusion. So a place that may exist counts as one that does: the next attempt tells.
///
/// Decision: a writer that is called asks at once, and so does the next writer after the last reader. After a write the
/// readers come first. A writer then waits for one and a half to two times the time that is reserved for them. Then it
/// looks whether they have come.
///
/// Decision: the clients behind a called one hear of the call, because the called one may be dead or paused. The next
/// writer, and each reader, asks after one and a half to two times the time that is reserved for the called one.
///
/// Decision: a called client has ten round trips to come, at least 20 ms. A slow link must not lose the turn. More than
/// 200 ms would keep the lock free for too long where the called client has died.
class queue_place {
 public:
  using duration = lease_clock::duration;
  static constexpr duration least_reserve = milliseconds(20), longest_reserve = milliseconds(200);
  static constexpr int reserved_round_trips = 10;

  /// News on the channel of the lock.
  struct message {
    enum class kind : std::uint8_t { read_ended, write_ended, other_called };
    using enum kind;

    constexpr message(kind of = read_ended, std::uint8_t clients_left = 1) noexcept : news(of), left(clients_left) {}
    kind news;
    std::uint8_t left;  // the queue, of other_called: the called client, and dead ones before it
  };
  enum class heed : std::uint8_t { now, later, never };

  // The attempts of the first waiter.
  /// An attempt is sent. `may_stand`: it waits for a turn, and its client hears when that comes. Returns the place to
  /// ask for.
  standing sends(bool may_stand) noexcept;
  /// The grant has taken the client out of the queue.
  void granted() noexcept { place_ = {}; }
  /// `rank`: the clients before this one that wait to write. Empty: unknown.
  void busy(std::optional<std::uint8_t> rank) noexcept { place_.rank = rank.value_or(0); }
  /// An answer has come after that time.
  void took(duration round_trip) noexcept;

  // The end of a place.
  /// The client stands there, or perhaps does.
  bool stands() const noexcept { return place_.stands; }
  /// The release of a field takes the client out.
  void leaves() noexcept { place_ = {}; }
  /// The release of a write puts the client at the end of the queue.
  void stands_again() noexcept { place_ = {.stands = true, .again = true}; }

  // When to ask.
  /// A message on the channel of the lock.
  heed heard(message heard, bool writes) noexcept;
  /// The client is called to write.
  void called() noexcept { place_.called = true; }
  /// A release of this client has its answer: so many other clients wait.
  heed released(std::uint64_t others) noexcept;
  /// The time that a called client has to come. A release reserves the lock for it that long.
  milliseconds reserve() const noexcept;
  /// The pause of `later`.
  duration pause(random_source& random) const;
  /// The same for a called client whose link is perhaps slower than that of this one.
  static duration patience(random_source& random);

 private:
  struct place {
    std::uint8_t rank = 0;
    bool stands = false;
    bool called = false;  // and has not asked since
    bool again = false;   // the release that put the client there was not answered yet
  };

  place place_;
  duration reserve_ = least_reserve;
};

}  // namespace holdfast::detail
