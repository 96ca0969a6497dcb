// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "base/function.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/environment.hpp"

namespace holdfast::detail {

/// Sends one copy of a command, whose answer is of use until `end`.
using copy_sender = function<void(time_point end, topology::handler)>;

/// Sends until there is an answer that is not "unconfirmed", at most twice; both copies together, and a connection that
/// has to be made for them, take no more than `timeout`.
void ask_twice(const environment& env, nanoseconds timeout, copy_sender send, topology::handler done);

}  // namespace holdfast::detail
