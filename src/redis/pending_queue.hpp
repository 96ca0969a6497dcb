// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/lease_clock.hpp"
#include "redis/outcome.hpp"

namespace holdfast::redis {

/// Pure: the commands of one connection that were not answered yet, in order.
///
///   waiting ── write() ──> written ── its deadline ──> abandoned
///      └── its deadline ──> gone
///
/// A reply consumes the oldest written or abandoned one: an abandoned command's caller was answered, but its reply is
/// still to come, so it keeps its place in the queue.
class pending_queue {
 public:
  using time_point = detail::time_point;
  using duration = detail::lease_clock::duration;

  /// `least_patience`: a command with a shorter timeout does not condemn the connection: a busy server or a scheduler may take that long.
  pending_queue(std::size_t capacity, duration least_patience) noexcept
      : capacity_(capacity), least_patience_(least_patience) {}

  bool empty() const noexcept { return entries_.empty(); }
  bool full() const noexcept { return entries_.size() >= capacity_; }
  std::size_t size() const noexcept { return entries_.size(); }
  bool any_written() const noexcept { return written_ != 0; }

  void push(std::string command, time_point deadline, time_point now, handler done);

  /// Appends waiting commands to `out` until it holds `enough` bytes; they are written from now on.
  void write(std::string& out, std::size_t enough, time_point now);

  /// A reply came: the handler of the oldest written command, an empty one if it was abandoned; nothing if none was
  /// written.
  std::optional<handler> take_answered(time_point now);

  struct expired {
    handler done;
    bool written;
  };
  struct review {
    std::vector<expired> over;  // callers to be answered, in order
    bool silent =
        false;  // no byte for longer than some written command can wait, or no whole answer for much longer: give
                // the connection up
    std::optional<time_point> next;  // when to look again
  };
  /// Ends what is past its deadline.
  review look(time_point now, time_point last_input);

  /// The connection ended. Handlers of what was written and not abandoned; what waits stays.
  std::vector<handler> lose_written();
  /// All that waits; nothing may be written.
  std::vector<handler> lose_waiting();
  void clear() noexcept;

 private:
  struct entry {
    std::string command;  // empty once written
    handler done;         // empty: abandoned
    time_point deadline;
    duration patience;  // for a sign of life of the server after the write
    time_point written{};
  };

  std::deque<entry> entries_;
  std::size_t written_ = 0;  // the first so many are written
  std::size_t capacity_;
  duration least_patience_;
  time_point last_answer_{};
};

}  // namespace holdfast::redis
