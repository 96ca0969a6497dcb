// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/this_coro.hpp>

#include <utility>

#include <holdfast/with_lock.hpp>

#include "cli/acquisition.hpp"
#include "cli/exit_status.hpp"
#include "cli/supervision.hpp"

namespace holdfast::cli {
namespace {

asio::awaitable<int> run_under(const run_options& options, const config& settings, lease held, job_signals& signals) {
  const auto end = co_await run_command(options, settings, held, signals);
  if (end.for_loss) co_return lost;
  const auto released = co_await as_result(held.unlock());
  if (released.has_error() && released.error() == errc::lost && options.lost != on_lost::warn) {
    notify(options, "lost", "the lock was lost before the command ended");
    co_return lost;
  }
  if (released.has_error() && released.error() != errc::lost)
    notify(options, "unconfirmed", "Redis does not confirm the release: the lock ends with its TTL");
  co_return end.status;
}

}  // namespace

asio::awaitable<int> run(run_options options) {
  const auto executor = co_await asio::this_coro::executor;
  const auto settings = config_of(options.acquire);
  client redis(executor, settings);
  job_signals signals(executor);
  auto made = co_await acquire(redis, options.acquire, settings, signals);
  int status = busy;
  if (made.held)
    status = co_await run_under(options, settings, std::move(*made.held), signals);
  else if (made.signal != 0)
    status = signalled + made.signal;
  else
    notify(options, "busy", "the lock is busy");
  co_await redis.shutdown(milliseconds(500));
  co_return status;
}

}  // namespace holdfast::cli
