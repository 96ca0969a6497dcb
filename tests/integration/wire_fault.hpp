// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "support/proxy.hpp"

namespace holdfast::test {

using action = proxy::rule::action;

/// A fault of the wire at one command or at its reply.
struct wire_fault {
  const char* name;
  action done;
  bool to_server;  // a command instead of a reply
  bool silent;     // no end of a connection tells the client: its timeout finds out, and callers may see it
};
inline constexpr wire_fault wire_faults[] = {{"replies swallowed", action::drop_rest, false, true},
                                             {"replies held back until they are late", action::hold_rest, false, true},
                                             {"cut before a reply", action::cut_before, false, false},
                                             {"cut after a reply", action::cut_after, false, false},
                                             {"commands swallowed", action::drop_rest, true, true},
                                             {"cut before a command", action::cut_before, true, false}};

}  // namespace holdfast::test
