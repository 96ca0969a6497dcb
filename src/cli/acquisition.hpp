// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>

#include <optional>

#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>

#include "cli/commands.hpp"

namespace holdfast::cli {

/// The signals that end or steer a job: INT, TERM, HUP, QUIT, USR1, USR2. One that was ignored at the start, as under
/// nohup, stays ignored, here and in the child.
class job_signals : public asio::signal_set {
 public:
  explicit job_signals(const asio::any_io_executor& executor);
};

struct acquisition {
  std::optional<lease> held{};  // empty: the lock is busy, or a signal came
  int signal = 0;
};

/// Waits for the lock as the options say, or until a signal comes.
///
/// Decision: the first attempt is a try_lock(), also without a limit. A Redis that cannot be reached then ends the
/// command, as cron and systemd expect. Later outages are waited for.
/// Throws holdfast::error.
asio::awaitable<acquisition> acquire(mutex lock, acquire_options options, asio::signal_set& signals);

}  // namespace holdfast::cli
