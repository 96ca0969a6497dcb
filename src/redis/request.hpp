// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <string>

#include "base/lease_clock.hpp"
#include "redis/outcome.hpp"

namespace holdfast::redis {

/// What becomes of a command when many are pending.
enum class urgency {
  obligation,  // always finds room, and is written before the others: what keeps or ends a hold
  patient,     // always finds room, in its turn: its caller waits for it
  refusable,   // overloaded where too many are pending
};

/// How long its sender waits for a command, and how it is treated meanwhile.
struct delivery {
  /// From the write on; while there is no connection, from when it was asked for or the connection was lost. A server
  /// that is silent for so long, and for endpoint::patience, loses the connection.
  detail::lease_clock::duration timeout;
  urgency rank = urgency::refusable;
  /// False: the handler is called at the timeout, and what is answered later is dropped. True: it waits for the answer,
  /// or for the end of the connection that the command was written to.
  bool patient = false;
  /// Patient senders may hear that the timeout is over: once, with unconfirmed if the command was written, else
  /// unreachable.
  handler late{};
};

/// One command in RESP, and who hears of it.
struct request {
  std::string command;
  delivery how;
  handler done;
};

/// Names a command that is pending; 0: one that was refused.
using ticket = std::uint64_t;

}  // namespace holdfast::redis
