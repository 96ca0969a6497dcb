// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "base/function.hpp"
#include "sync/surroundings.hpp"
#include "sync/terms.hpp"

namespace holdfast::detail {

/// Sends one copy of a command, which may take the time that is `left`.
using copy_sender = function<void(nanoseconds left, topology::handler)>;

/// Sends until there is an answer that is not "unconfirmed", at most twice; both copies together take no more than
/// `timeout` from the first write on.
void ask_twice(const surroundings& around, nanoseconds timeout, copy_sender send, topology::handler done);

}  // namespace holdfast::detail
