// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/lease_clock.hpp"
#include "redis/request.hpp"

namespace holdfast::redis {

/// Pure: the unanswered commands of one connection.
///
///   waiting ── write() ──> written ── answer ──> gone
///      │                      └─ its timeout ──> abandoned: its sender was answered, its reply is still to come
///      └── forget(); without a connection: its timeout ──> gone
///
/// Decision: waiting in the queue costs nothing. Sixty thousand lock() at once once took a minute and 280 000 commands:
/// each timed out in the queue, was sent again, and its late answer was dropped. So a timeout counts on the wire and
/// while there is no connection, both together. A connection that goes on answering is not late. A sender with
/// waits_for_reply waits for the answer, or for the end of the connection.
///
/// Obligations are written before the others, each rank in its order, and always find room. At most a window of
/// commands is on the wire. A command that still waits can be forgotten without compensation, and a more urgent one
/// overtakes it. Only the loss of the connection and its return walk the queue.
///
/// ASKING and CLIENT CACHING are about the next command only, so each is written with it. The server forgets one of
/// them upon the other: ASKING alone is written then, because without it the command is refused.
///
/// A connection that was silent for long is asked first: PING is written alone, and commands wait for its answer as
/// they wait for a connection. If a load balancer has forgotten that connection, the commands were not written. They go
/// to the next one, and nothing is ambiguous.
class pending_queue {
 public:
  using time_point = detail::time_point;
  using duration = detail::lease_clock::duration;

  struct limits {
    std::size_t capacity;  // of refusable commands: three quarters of it, counting all that is pending
    // A shorter timeout does not condemn the connection: a busy server or a scheduler may take that long.
    duration least_silence_limit;
    std::size_t window = 4096;
  };
  explicit pending_queue(const limits& limits) noexcept : limits_(limits) {}

  bool empty() const noexcept { return size() == 0; }
  std::size_t size() const noexcept { return waiting_[0].alive + waiting_[1].alive + written_.size(); }
  bool refuses(const delivery& delivery) const noexcept;
  bool any_written() const noexcept { return !written_.empty() && !asking(); }
  /// The connection is being asked by PING.
  bool asking() const noexcept { return !written_.empty() && written_.front().health_check; }
  /// Written, and their answers are still to come: abandoned ones, too.
  std::size_t on_wire() const noexcept { return written_.size(); }
  bool can_write() const noexcept;

  /// `now` does not matter where there is a connection.
  ticket push(request request, time_point now);
  /// True: the command was not written and never will be; the queue keeps it no more.
  bool forget(ticket ticket);

  /// A connection is there: waiting costs nothing from now on.
  void connected(time_point now);
  /// Appends waiting commands to `out` until it holds `enough` bytes or the window is full; they are written from now
  /// on.
  void write(std::string& out, std::size_t enough, time_point now);
  /// The least time that a waiting command has left. The longest duration if only renewals wait.
  duration shortest_wait() const noexcept;
  /// Appends PING; waiting commands are written after its answer. The connection is silent after `limit`. Nothing may
  /// be written and unanswered.
  void ask(std::string& out, duration limit, time_point now);

  /// The server pushes changes for this connection: commands with delivery::track are tracked. Until disconnected().
  void track(bool on) noexcept { tracking_ = on; }
  bool tracking() const noexcept { return tracking_; }

  struct answered {
    command_ptr command;  // null: abandoned, or it was the answer to a prefix or to the PING of ask()
    time_point sent;
    bool tracked = false;     // outcome::tracked
    bool to_caching = false;  // the answer to CLIENT CACHING
  };
  /// A reply came: it belongs to the oldest written command; nothing if none was written. `refused`: it is an error.
  std::optional<answered> take_answered(time_point now, bool refused = false);

  struct overdue {
    command_ptr command;
    bool goes_on;  // its sender waits for the reply: late() is called, else answered()
    bool written;
    time_point sent;

    void tell(const outcome& outcome) const { goes_on ? command->late(outcome) : command->answered(outcome); }
  };
  /// Takes a command whose timeout is over, if there is one.
  std::optional<overdue> take_overdue(time_point now);
  /// No byte for longer than the oldest written command can wait, or no whole answer for much longer.
  bool silent(time_point now, time_point last_input) const;
  /// The time at which take_overdue() or silent() may change its result.
  std::optional<time_point> next_look(time_point last_input);

  /// The connection ended, now: written commands are lost, and next_lost() returns them; waiting ones stay.
  void disconnected(time_point now);
  /// The first lost command: all before it had been answered. Null: none, or an abandoned one.
  const command* oldest_lost() const noexcept { return lost_.empty() ? nullptr : lost_.front().command.get(); }
  /// The oldest lost command that was not abandoned. Both need no memory.
  std::optional<answered> next_lost() noexcept;
  /// Returns all waiting commands. No command may be written and unanswered.
  std::vector<command_ptr> lose_waiting();
  void clear() noexcept;

 private:
  struct waiting {
    ticket id;
    request asked;     // of nothing: forgotten
    duration spent{};  // of its timeout, without a connection

    duration left() const noexcept { return asked.terms.timeout - spent; }
  };
  /// Waiting commands of one rank. Forgotten ones leave gaps, fewer than half.
  struct line {
    std::deque<waiting> entries;
    std::size_t alive = 0;

    std::deque<waiting>::iterator find(ticket ticket);
    request take(std::deque<waiting>::iterator position);
    void drop_front();
    void close_gaps();
  };
  /// A command that is written before another, and answered before it.
  enum class prefix : std::uint8_t { none, asking, caching };
  struct written {
    command_ptr command;  // null: abandoned
    delivery terms;
    time_point sent;
    prefix unanswered;     // that comes before its own answer
    bool health_check;     // the PING of ask()
    bool tracked = false;  // CLIENT CACHING was accepted
  };
  struct alarm {
    time_point when;
    std::uint64_t target;  // number of a written command, or ticket of a waiting one
    bool operator>(const alarm& other) const noexcept { return when > other.when; }
  };
  /// Alarms of answered commands stay for a while: most alarms are never looked at.
  class alarms {
   public:
    bool empty() const noexcept { return heap_.empty(); }
    std::size_t size() const noexcept { return heap_.size(); }
    const alarm& top() const noexcept { return heap_.front(); }
    void push(alarm added) {
      heap_.push_back(added);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
    void pop() noexcept {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      heap_.pop_back();
    }
    /// Drops the alarms of all commands before this number.
    void drop_before(std::uint64_t target) noexcept {
      std::erase_if(heap_, [target](const alarm& each) { return each.target < target; });
      std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    }

   private:
    std::vector<alarm> heap_;
  };

  static bool watched(const delivery& delivery) noexcept { return !delivery.waits_for_reply || delivery.tell_late; }
  prefix prefix_of(const delivery& delivery) const noexcept;
  void watch_waiting(time_point now);
  void write_first(std::string& out, line& line, time_point now);
  line& line_of(ticket ticket) noexcept { return waiting_[ticket % 2]; }
  time_point silence_ends(time_point last_input) const;
  void drop_stale_alarms();
  std::optional<overdue> take_overdue_written(time_point now);
  std::optional<overdue> take_overdue_waiting(time_point now);

  limits limits_;
  std::array<line, 2> waiting_;  // obligations; the others
  std::deque<written> written_, lost_;
  std::uint64_t answered_ = 0;  // the number of the first written one
  std::uint64_t asked_ = 0;
  alarms written_alarms_;
  alarms waiting_alarms_;  // while there is no connection, or it is being asked
  bool trusted_ = false;   // there is a connection, and it is not being asked
  bool tracking_ = false;
  time_point last_answer_{};
};

}  // namespace holdfast::redis
