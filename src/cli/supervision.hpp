// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>

#include <string>

#include <holdfast/config.hpp>
#include <holdfast/lease.hpp>

#include "cli/acquisition.hpp"
#include "cli/commands.hpp"

namespace holdfast::cli {

/// One line about the lock to standard error: standard output is the command's.
///
/// Decision: a notice that would wait for its reader is dropped. The lease is renewed and the command is ended here.
/// Neither may wait for a full pipe or a terminal that was stopped (Ctrl-S).
void notify(const run_options& options, const char* happened, const std::string& text);

/// The end of a command.
struct command_end {
  int status = 0;         // as a shell has it
  bool for_loss = false;  // it was ended because the lock was lost
  bool started = true;
};

/// Runs the command under its lease, to its end. What happens first decides: it ends, a signal comes, or the lock is
/// lost. Signals go to its process group.
asio::awaitable<command_end> run_command(const run_options& options, const config& settings, const lease& held,
                                         job_signals& signals);

}  // namespace holdfast::cli
