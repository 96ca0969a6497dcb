// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "base/function.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/environment.hpp"

namespace holdfast::detail {

/// Sends one copy of a command. Its answer is useful until `end`.
using copy_sender = function<void(time_point end, topology::handler)>;

/// Sends a command, and once more if the first copy ends `unconfirmed`. Both copies together take at most `timeout`,
/// connecting included.
///
/// Decision: a call has one budget. try_lock(), unlock(), renew(), a question and force_unlock() promise one command
/// timeout. Time without a connection counts. A second copy gets the rest, whether a connection was lost or the server
/// needs the script's text (script_command::time_left_for_copies). If the rest is too short, the call ends unanswered,
/// and a lock that it took is given back. Time in the queue of a living connection does not count.
void ask_twice(const environment& env, nanoseconds timeout, copy_sender send, topology::handler done);

}  // namespace holdfast::detail
