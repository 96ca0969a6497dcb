// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "protocol/owner_field.hpp"

namespace holdfast::detail {

/// The places of this client in the queue of one lock in Redis. Pure. Each of the first sixteen waiters of the line
/// has one, in the order of the line. It says which places the next command shows to Redis.
///
/// Decision: a command is absolute, and one is under way at a time. It names the places that stand, in their order, and
/// all others of the client leave. The latest wish is sent next. So a lost or repeated command changes nothing.
///
/// Decision: a place that may stand counts as one that does, until an answer says that it has left. Its number is not
/// used again before. A newcomer would get the position of the waiter that has left.
///
/// Decision: a place stands for its client, and not for a waiter. A grant for any of them goes to the first waiter. The
/// place of a waiter that leaves goes with it, so that nobody behind it gains its position.
///
/// Decision: the first waiter does not ask while the place of another one that has left still stands. The grant would
/// be for the position of that one.
///
/// Decision: nothing is shown while an attempt of the first waiter is under way and its place stands. The attempt may
/// take the place out of the queue, and a command behind it would put it there again.
class places {
 public:
  static constexpr std::size_t most = most_places;

  /// The places that one command shows, in their order.
  class list {
   public:
    void add(std::uint8_t place) noexcept { numbers_[size_++] = place; }
    std::span<const std::uint8_t> all() const& noexcept { return {numbers_.data(), size_}; }
    void all() const&& = delete;  // a range-for would outlive the list

   private:
    std::array<std::uint8_t, most> numbers_{};
    std::uint8_t size_ = 0;
  };

  // The waiters.
  /// One more waits, behind the others.
  void joined() noexcept;
  /// The n-th waiter waits no more.
  void left(std::size_t nth) noexcept;
  /// A grant for the first waiter has taken this place out of the queue. Empty: one of them, or none.
  void taken(std::optional<std::uint8_t> place) noexcept;

  // The subscriptions.
  /// The place hears its calls. It is shown again, because it may have been dropped meanwhile.
  void listens(std::uint8_t place) noexcept;
  /// Its subscription was refused.
  void is_deaf(std::uint8_t place) noexcept { listening_ &= without(place); }
  /// The place is called, so it stands.
  void called(std::uint8_t place) noexcept { may_ |= bit(place); }

  // The commands.
  /// A command should be sent. `attempting`: the first waiter has an attempt under way.
  bool wants_to_show(bool attempting) const noexcept;
  /// A command is sent. An empty list: all places leave.
  list show(bool attempting) noexcept;
  /// A command is under way.
  bool shows() const noexcept { return shows_; }
  /// It has its answer.
  void shown() noexcept;
  /// It has none. `may_have_run`: or it may still run.
  void not_shown(bool may_have_run) noexcept;
  /// Redis may have forgotten places, or their time is nearly over: all are shown again.
  void show_all() noexcept { all_again_ = true; }
  /// All places leave by a release that goes on until it is answered. Nothing is shown meanwhile.
  void leave() noexcept { leaves_ = true; }
  bool leaves() const noexcept { return leaves_; }
  /// That release has ended. `unanswered`: the places may still stand.
  void released(bool unanswered) noexcept;

  // The state.
  /// The places of the waiters, in their order.
  std::span<const std::uint8_t> wanted() const noexcept { return {order_.data(), size_}; }
  /// A place may stand in the queue.
  bool may_stand() const noexcept { return (may_ | sent_) != 0; }
  /// A place stands that no waiter has, and no command under way takes it out.
  bool is_one_too_many() const noexcept { return ((shows_ ? sent_ : may_) & ~wanted_set()) != 0 && !leaves_; }
  /// The number of places that stand, by the last answer.
  unsigned standing() const noexcept { return static_cast<unsigned>(std::popcount(known_)); }
  /// The first waiter's place stands, by the last answer.
  bool first_stands() const noexcept { return size_ > 0 && (known_ & bit(order_[0])) != 0; }

 private:
  using set = std::uint16_t;  // bit n is the place n

  static constexpr set bit(std::uint8_t place) noexcept { return static_cast<set>(1U << place); }
  static constexpr set without(std::uint8_t place) noexcept { return static_cast<set>(~bit(place)); }
  set wanted_set() const noexcept;
  list next(bool attempting) const noexcept;
  void fill() noexcept;

  std::array<std::uint8_t, most> order_{};  // the places of the waiters
  std::uint8_t size_ = 0;
  std::size_t waiting_ = 0;  // also those without a place
  set listening_ = 0;        // have a subscription
  set may_ = 0;              // may stand, by the commands that were answered
  set known_ = 0;            // stand, by the last answer
  set sent_ = 0;             // shown by the command under way
  bool shows_ = false;
  bool all_again_ = false;
  bool leaves_ = false;
};

}  // namespace holdfast::detail
