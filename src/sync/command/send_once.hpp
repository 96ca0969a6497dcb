// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>

#include "protocol/call.hpp"
#include "sync/claim/terms.hpp"
#include "topology/topology.hpp"

// Most commands need no state of their own between question and answer: no caller withdraws them, and a handler takes
// the answer. These functions make a script_command for one such command. A command that may be withdrawn, repeated or
// put off derives from script_command itself.

namespace holdfast::detail {

struct environment;

/// Sends a command that is never withdrawn. The operands of the call must live until the answer.
void send_once(const environment& env, const call& asked, const delivery& delivery, topology::handler done);
/// The same for an answer that is useless after `end`. One copy or two share that time.
void send_until(const environment& env, time_point end, const call& asked, urgency rank, topology::handler done);
/// Like send_once(), to one of several primaries: no vote is taken.
void send_to_primary(const environment& env, std::size_t primary, const call& asked, const delivery& delivery,
                     topology::handler done);

}  // namespace holdfast::detail
