// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "protocol/call.hpp"
#include "redis/request.hpp"

// A command goes to the server that has its key, or to each of several independent primaries. A deployment is one or
// the other for good, so its sender is chosen once, where the engine is made. No command asks how many primaries there
// are, and the room of the commands knows nothing of votes.

namespace holdfast::detail {

class script_command;
struct environment;

/// Sends the commands of a client to all servers that answer them.
class script_sender {
 public:
  /// Begins `command`, which is not under way.
  virtual void send(const environment& env, script_command& command, const call& asked,
                    const redis::delivery& delivery) const = 0;

 protected:
  ~script_sender() = default;
};

}  // namespace holdfast::detail
