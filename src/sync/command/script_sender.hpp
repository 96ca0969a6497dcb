// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "protocol/call.hpp"
#include "redis/request.hpp"

// Decision: a command goes to the server that has its key, or to each of several independent primaries. A deployment
// never changes between the two, so the engine chooses its sender once. No command asks how many primaries there are,
// and the commands do not depend on the votes.

namespace holdfast::detail {

class script_command;
struct environment;

/// Sends the commands of a client to all servers that decide about them.
class script_sender {
 public:
  /// Begins `command`, which is not under way.
  virtual void send(const environment& env, script_command& command, const call& asked,
                    const redis::delivery& delivery) const = 0;

 protected:
  ~script_sender() = default;
};

}  // namespace holdfast::detail
