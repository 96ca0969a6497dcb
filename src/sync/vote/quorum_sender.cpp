// SPDX-License-Identifier: BSL-1.0
#include "sync/vote/quorum_sender.hpp"

#include <memory>

#include "sync/vote/round.hpp"

namespace holdfast::detail {

void quorum_sender::send(const surroundings& around, script_command& command, const call& asked,
                         const redis::delivery& how) const {
  command.send(std::make_shared<round>(around, voters_, asked, command.shared_from_this()), how.timeout);
}

}  // namespace holdfast::detail
