// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/lease_clock.hpp"
#include "redis/outcome.hpp"

namespace holdfast::redis {

/// The rank of a command when many are pending.
enum class urgency : std::uint8_t {
  obligation,  // always finds room, and is written before the others: it keeps or ends a hold
  awaited,     // always finds room, in its order: its caller waits for it
  refusable,   // refused as overloaded if too many are pending
};

/// How long the sender of a command waits, and how the command is treated meanwhile.
struct delivery {
  /// On the wire and without a connection together; time in the queue of a living connection does not count. A server
  /// that is silent for that long, and for endpoint::silence_limit, loses the connection.
  detail::lease_clock::duration timeout;
  urgency rank = urgency::refusable;
  /// False: the command is answered at the timeout, and a later reply is dropped. True: its sender waits for the reply,
  /// or for the end of the connection that the command was written to.
  bool waits_for_reply = false;
  /// With waits_for_reply: the sender is notified at the timeout. late() is called once, with unconfirmed if the
  /// command was written, else unreachable.
  bool tell_late = false;
  /// ASKING goes before it, in the same write, because its slot is moving to this server. The answer to ASKING is
  /// dropped.
  bool asking = false;
  /// Whether the server is to push the next change of the keys that the command reads. CLIENT CACHING goes before it,
  /// in the same write, if this connection's changes are pushed. Otherwise nothing more is sent. ASKING is stronger:
  /// the server knows only one of the two.
  bool track = false;
  /// No caller waits for the answer, and there is time for another copy: a renewal.
  bool unhurried = false;
  /// The sender can ask for each of its keys separately. It gets TRYAGAIN at once: the slot is moving, and only some of
  /// the keys are here.
  bool divisible = false;
};

/// The name of a script of ours, or of a command of Redis.
struct command_name {
  std::string_view name;
  bool script;
};

/// One command: it makes its bytes when they are written, and gets its outcome.
///
/// Decision: a command is an object, not a text. An owner field, keys and a TTL take less memory than the text made of
/// them. A command that is withdrawn in time has made no text, and its sender may send the same object again.
class command {
 public:
  virtual ~command() = default;
  /// Appends the command in RESP.
  virtual void append_to(std::string& out) const = 0;
  virtual void answered(const outcome& outcome) = 0;
  /// A copy is written now: no earlier answer belongs to it. `left`: the rest of its timeout.
  virtual void written(detail::time_point /*now*/, detail::lease_clock::duration /*left*/) noexcept {}
  /// A replica cannot give this answer to it.
  virtual bool shows_primary(const reply&) const noexcept { return false; }
  /// The name under which observers count it; null: it is not counted.
  virtual const command_name* counted_as() const noexcept { return nullptr; }
  /// delivery::tell_late
  virtual void late(const outcome&) {}
};
using command_ptr = std::shared_ptr<command>;

/// A command and its delivery. The executor keeps the command until it is answered or withdrawn.
struct request {
  command_ptr command;
  delivery terms;
};

/// Names a pending command; 0: the command was refused.
using ticket = std::uint64_t;

}  // namespace holdfast::redis
