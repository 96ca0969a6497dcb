// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/error.hpp>

namespace holdfast::cli {

/// The exit status of a subcommand: sysexits.h where it has a word, and 79 for a lost lock. `run` ends with the status
/// of its command otherwise.
enum exit_status : int {
  done = 0,
  warned = 1,
  failed = 2,
  misused = 64,
  no_lock = 65,
  unreachable = 69,
  broken = 70,
  cannot_listen = 71,
  not_written = 74,
  busy = 75,
  not_permitted = 77,
  misconfigured = 78,
  lost = 79,
  cannot_execute = 126,
  not_found = 127,
  signalled = 128,
};

exit_status status_of(const error_code& code) noexcept;

}  // namespace holdfast::cli
