// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sync/command/script_sender.hpp"

namespace holdfast::detail {

class voting;

/// Sends a copy of each command to each of several independent primaries. A majority of them decides the answer.
class quorum_sender final : public script_sender {
 public:
  explicit quorum_sender(voting& voters) noexcept : voters_(voters) {}

  void send(const environment& env, script_command& command, const call& asked,
            const redis::delivery& delivery) const override;

 private:
  voting& voters_;
};

}  // namespace holdfast::detail
