// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/function.hpp"
#include "base/lease_clock.hpp"
#include "base/timers.hpp"

namespace holdfast::sim {

using detail::time_point;
using nanoseconds = detail::lease_clock::duration;

/// The virtual time that all share.
class virtual_clock final : public detail::clock {
 public:
  time_point now() const noexcept override { return now_; }
  void advance_to(time_point when) noexcept { now_ = std::max(now_, when); }

 private:
  time_point now_{std::chrono::hours(1)};
};

/// One direction of a connection. Of two things that are sent on it, the later one arrives later.
struct flow {
  std::string name;
  const void *from, *to;  // a route and its server; null: another server
};

/// An object with handlers and timers of its own.
class participant {
 public:
  /// Runs everything that is ready or due, and its consequences.
  virtual void run() = 0;
  /// The time of its next run if nothing is sent to it.
  virtual std::optional<time_point> next() const = 0;

 protected:
  ~participant() = default;
};

/// Runs events and the participants' own timers in the order of virtual time. Events of one instant run in the order in
/// which they were made.
class scheduler {
 public:
  time_point now() const noexcept { return time_.now(); }
  const virtual_clock& time() const noexcept { return time_; }

  void at(time_point when, detail::function<void()> act);
  void after(nanoseconds delay, detail::function<void()> act) { at(now() + delay, std::move(act)); }
  /// `act` runs when it arrives on this flow, which must outlive it. `private_to_ends`: it reads and changes nothing
  /// but the two ends of the connection.
  void send(const flow& on, time_point arrives, detail::function<void()> act, bool private_to_ends = false);
  /// Participants run in the order in which they came.
  void add(participant& participant) { participants_.push_back(&participant); }
  void remove(participant& participant) { std::erase(participants_, &participant); }

  /// Goes to the next instant at which something happens and runs all of it; false when nothing will ever happen again.
  bool step();
  /// Steps until `end`; time is `end` after it.
  void run_until(time_point end);
  /// What is due already, and nothing later; time stands still.
  void run_due();
  /// Events alone happen until `end`; what participants have to do comes late.
  void pause_until(time_point end);
  /// When something happens next.
  std::optional<time_point> next() const;
  void clear() {
    events_.clear();
    held_.clear();
  }

  // A search for all orders: it decides when something arrives, and the time does not.
  /// From now on, what is sent on a flow is held until it is let in. Off: all of it arrives in the order of time.
  void hold_flows(bool on);
  struct first_of_flow {
    const flow* on;
    bool private_to_ends;
  };
  /// The first event of each flow that holds one, in the order in which they were sent.
  std::vector<first_of_flow> held() const;
  bool holds(const flow& on) const;
  /// The first event of this flow, which holds one, happens now, with all consequences.
  void let_in(const flow& on);

  /// Called after each instant.
  std::function<void()> on_step;
  /// A participant has something more to do.
  void announce(time_point when) const {
    if (on_new) on_new(when);
  }
  /// Called with the time of all that comes.
  std::function<void(time_point)> on_new;

 private:
  struct held_event {
    const flow* on;
    time_point when;
    detail::function<void()> act;
    bool private_to_ends;
  };

  void settle();
  std::optional<time_point> next_event() const;
  void run_events();

  virtual_clock time_;
  std::multimap<time_point, detail::function<void()>> events_;
  std::vector<participant*> participants_;
  std::deque<held_event> held_;
  bool holds_flows_ = false;
};

}  // namespace holdfast::sim
