// SPDX-License-Identifier: BSL-1.0
#include "sync/vote/quorum_sender.hpp"

#include <memory>

#include "sync/vote/quorum_call.hpp"

namespace holdfast::detail {

void quorum_sender::send(const environment& around, script_command& command, const call& asked,
                         const redis::delivery& how) const {
  command.send(std::make_shared<quorum_call>(around, voters_, asked, command.shared_from_this()), how.timeout);
}

}  // namespace holdfast::detail
