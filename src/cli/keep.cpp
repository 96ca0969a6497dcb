// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <csignal>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <holdfast/client.hpp>
#include <holdfast/error.hpp>
#include <holdfast/keep_running.hpp>
#include <holdfast/observer.hpp>

#include "cli/acquisition.hpp"
#include "cli/exit_status.hpp"
#include "cli/supervision.hpp"

namespace holdfast::cli {
namespace {

/// A command that has failed: the exception of a body.
struct command_failure : std::runtime_error {
  explicit command_failure(int ended)
      : std::runtime_error("the command ended with status " + std::to_string(ended)), status(ended) {}
  int status;
};

/// Says why the lock is not granted. keep_running() waits, or tries again.
class refusal_report final : public observer {
 public:
  explicit refusal_report(run_options options) : options_(std::move(options)) {}
  void on(const event& event) noexcept override try {
    if (event.kind == event_kind::acquire_failed) notify(options_, "refused", event.reason.message());
    if (event.kind == event_kind::outage) notify(options_, "outage", event.reason.message());
  } catch (...) {
    // No memory: the notice is dropped.
  }
  bool wants_ids() const noexcept override { return false; }

 private:
  const run_options options_;
};

/// A command that is run again and again under a lock, until its policy or a signal ends it.
///
/// Decision: a signal ends the worker when its command has ended, or at once if none runs. A hangup is the command's
/// own while it runs: services reload then. SIGUSR1 and SIGUSR2 always are.
class kept_command {
 public:
  kept_command(const worker_options& options, const config& settings, const asio::any_io_executor& executor)
      : options_(options), settings_(settings), signals_(executor),
        over_(executor, asio::steady_timer::time_point::max()) {}

  /// Returns the exit status.
  asio::awaitable<int> run(const mutex& lock) {
    using namespace asio::experimental::awaitable_operators;
    co_await (until_its_policy(lock) || watch_signals() || until_over());
    if (failed_) std::rethrow_exception(failed_);
    co_return status_;
  }

 private:
  lock_options terms() const {
    const auto& given = options_.run.acquire;
    lock_options terms{.ttl = given.ttl, .renew = true, .max_hold = given.max_hold};
    terms.note = given.note;
    return terms;
  }

  /// Never throws: `||` waits on while the other sides have not ended.
  asio::awaitable<void> until_its_policy(const mutex& lock) {
    auto body = [this](lease& held) { return one_run(held); };
    const keep_options options{
        .restart = options_.restart, .pause = options_.pause, .backoff_cap = options_.backoff_cap};
    try {
      co_await keep_running(lock, body, options, terms());
      if (!is_over_) status_ = done;
    } catch (const command_failure& failure) {
      status_ = failure.status;
    } catch (const boost::system::system_error& failure) {
      if (!is_over_ && !(warned_ && failure.code() == errc::lost)) failed_ = std::current_exception();
    } catch (...) {
      if (!is_over_) failed_ = std::current_exception();
    }
  }

  asio::awaitable<void> watch_signals() {
    for (;;) {
      const int number = co_await signals_.async_wait(asio::use_awaitable);
      if (number == SIGUSR1 || number == SIGUSR2 || (running_ && number == SIGHUP)) continue;
      stopped_ = true;
      if (!running_) end_with(signalled + number);
    }
  }

  asio::awaitable<void> until_over() {
    boost::system::error_code cancelled;
    co_await over_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }

  void end_with(int status) {
    status_ = status;
    is_over_ = true;
    over_.cancel();
  }

  /// A loss does not cancel it: run_command() ends the command as --on-lost says, and that takes time.
  asio::awaitable<void> one_run(lease& held) {
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    if (is_over_) co_return;  // the signal met the grant
    // The signals of this run alone. An earlier signal is not for this command.
    job_signals signals(co_await asio::this_coro::executor);
    running_ = true;
    const auto end = co_await run_command(options_.run, settings_, held, signals);
    running_ = false;
    // The status of a command that outlived its lock counts. keep_running() throws the loss instead.
    warned_ = !held.held() && !end.for_loss && end.started;
    if (warned_) status_ = end.status;
    if (stopped_ || !end.started) end_with(end.status);
    if (end.status == done || end.for_loss) co_return;
    if (!is_over_) notify(options_.run, "failed", "the command ended with status " + std::to_string(end.status));
    throw command_failure(end.status);
  }

  const worker_options& options_;
  const config& settings_;
  job_signals signals_;
  asio::steady_timer over_;  // cancelled by end_with()
  bool running_ = false, stopped_ = false, is_over_ = false;
  bool warned_ = false;  // the last command went on after the loss of its lock
  int status_ = done;
  std::exception_ptr failed_;
};

}  // namespace

asio::awaitable<int> keep(worker_options options) {
  const auto executor = co_await asio::this_coro::executor;
  auto settings = config_of(options.run.acquire);
  if (options.run.acquire.lock.take > 1) throw usage_error("keep takes one permit: --take goes with run and hold");
  settings.observer = std::make_shared<refusal_report>(options.run);
  client redis(executor, settings);
  kept_command kept(options, settings, executor);
  const int status = co_await kept.run(mutex_of(redis, options.run.acquire.lock, settings));
  co_await redis.shutdown(milliseconds(500));
  co_return status;
}

}  // namespace holdfast::cli
