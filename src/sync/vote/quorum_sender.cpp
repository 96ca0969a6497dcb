// SPDX-License-Identifier: BSL-1.0
#include "sync/vote/quorum_sender.hpp"

#include <memory>

#include "sync/vote/quorum_call.hpp"

namespace holdfast::detail {

void quorum_sender::send(const environment& env, script_command& command, const call& asked,
                         const redis::delivery& delivery) const {
  // The rank is not used: each copy is an obligation, see quorum_call.cpp.
  command.send(std::make_shared<quorum_call>(env, voters_, asked, delivery.track, command.shared_from_this()),
               delivery.timeout);
}

}  // namespace holdfast::detail
