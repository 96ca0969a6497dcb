// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sync/command/environment.hpp"
#include "sync/command/script_command.hpp"
#include "sync/command/script_sender.hpp"

namespace holdfast::detail {

/// Sends each command to the server that has its key: one server decides about it.
class single_server_sender final : public script_sender {
 public:
  void send(const environment& env, script_command& command, const call& asked,
            const redis::delivery& delivery) const override {
    command.send(env.servers, asked, delivery);
  }
};

}  // namespace holdfast::detail
