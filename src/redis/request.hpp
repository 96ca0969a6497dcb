// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/lease_clock.hpp"
#include "redis/outcome.hpp"

namespace holdfast::redis {

/// What becomes of a command when many are pending.
enum class urgency : std::uint8_t {
  obligation,  // always finds room, and is written before the others: what keeps or ends a hold
  awaited,     // always finds room, in its turn: its caller waits for it
  refusable,   // overloaded where too many are pending
};

/// How long its sender waits for a command, and how it is treated meanwhile.
struct delivery {
  /// On the wire and without a connection together; time in the queue of a living connection does not count. A server
  /// that is silent for so long, and for endpoint::patience, loses the connection.
  detail::lease_clock::duration timeout;
  urgency rank = urgency::refusable;
  /// False: it is answered at the timeout, and what comes later is dropped. True: it waits for the answer, or for the
  /// end of the connection that the command was written to.
  bool waits_for_reply = false;
  /// A patient sender hears that the timeout is over: late() is called once, with unconfirmed if the command was
  /// written, else unreachable.
  bool tell_late = false;
  /// ASKING goes before it, in the same write, and the answer to that is dropped: its slot is moving to this server.
  bool asking = false;
  /// Nobody waits for the answer, and there is time for another copy: a renewal.
  bool unhurried = false;
  /// Its sender can ask for each of its keys by itself, and hears at once that its slot is moving and has only some of
  /// them here (TRYAGAIN).
  bool divisible = false;
};

/// Of a script of ours, or of a command of Redis.
struct command_name {
  std::string_view name;
  bool script;
};

/// One command: it makes its bytes when they are written, and hears what became of it.
class command {
 public:
  virtual ~command() = default;
  /// Appends it in RESP.
  virtual void append_to(std::string& out) const = 0;
  virtual void answered(const outcome& outcome) = 0;
  /// A copy of it goes out now: no earlier answer is an answer to it. `left`: of its timeout.
  virtual void written(detail::time_point /*now*/, detail::lease_clock::duration /*left*/) noexcept {}
  /// A replica cannot give this answer to it.
  virtual bool shows_primary(const reply&) const noexcept { return false; }
  /// What an observer counts it as; null: it is not counted.
  virtual const command_name* counted_as() const noexcept { return nullptr; }
  /// delivery::tell_late
  virtual void late(const outcome&) {}
};
using command_ptr = std::shared_ptr<command>;

/// A command and its delivery. Its executor keeps the command until it is answered, or nobody waits for that.
struct request {
  command_ptr command;
  delivery terms;
};

/// Names a command that is pending; 0: one that was refused.
using ticket = std::uint64_t;

}  // namespace holdfast::redis
