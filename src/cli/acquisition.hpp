// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <optional>

#include <holdfast/error.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>

#include "cli/commands.hpp"
#include "cli/server/patience.hpp"

namespace holdfast::cli {

/// The signals that end or steer a job: INT, TERM, HUP, QUIT, USR1, USR2. One that was ignored at the start, as under
/// nohup, stays ignored, here and in the child.
class job_signals : public asio::signal_set {
 public:
  explicit job_signals(const asio::any_io_executor& executor);
};

/// The first call of a client: it is repeated while Redis does not answer, for as long as client::connect() tries. A
/// call alone has the time of one command, and a slow name lookup or TLS would take all of it. A standstill of this
/// process does not count.
template <class T, class Call>
asio::awaitable<T> first_call(const config& settings, Call call) {
  using std::chrono::steady_clock;
  patience left(settings.connect_timeout + settings.command_timeout);
  asio::steady_timer pause(co_await asio::this_coro::executor);
  for (;;) {
    const auto begin = steady_clock::now();
    try {
      co_return co_await call();
    } catch (const error& failed) {
      left.waited(settings.command_timeout, steady_clock::now() - begin);
      if (failed.code() != condition::retry_later || left.is_over()) throw;
    }
    const milliseconds planned(20);
    pause.expires_after(planned);
    co_await pause.async_wait(asio::use_awaitable);
    left.waited(planned, planned);
  }
}

/// The settings of a client that takes this lock. A note turns config::notes on.
config config_of(const acquire_options& options);

struct acquisition {
  std::optional<lease> held{};  // empty: the lock is busy, or a signal came
  int signal = 0;
};

/// Waits for the lock as the options say, or until a signal comes.
///
/// Decision: the first attempt is a try_lock(), also without a limit. A Redis that cannot be reached then ends the
/// command, as cron and systemd expect. Later outages are waited for.
/// Throws holdfast::error.
asio::awaitable<acquisition> acquire(const client& redis, acquire_options options, const config& settings,
                                     asio::signal_set& signals);

}  // namespace holdfast::cli
