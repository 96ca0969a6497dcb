// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/serialize.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include <holdfast/with_lock.hpp>

#include "cli/acquisition.hpp"
#include "cli/child_process.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {
namespace {

/// To standard error: standard output is the command's.
///
/// Decision: a notice that would wait for its reader is dropped. The lease is renewed and the command is ended here.
/// Neither may wait for a full pipe or a terminal that was stopped (Ctrl-S).
void notify(const run_options& options, const char* happened, const std::string& text) {
  pollfd reader{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&reader, 1, 0) != 1 || (reader.revents & POLLOUT) == 0) return;
  const auto& name = options.acquire.lock.name;
  if (!options.acquire.access.json) {
    complain(shown(name) + ": " + text);
    return;
  }
  json::object line;
  line["event"] = happened;
  put_bytes(line, "name", name);
  line["text"] = text;
  std::fputs((json::serialize(line) + '\n').c_str(), stderr);
}

asio::awaitable<void> pause(milliseconds duration) {
  asio::steady_timer alarm(co_await asio::this_coro::executor, duration);
  co_await alarm.async_wait(asio::use_awaitable);
}

asio::awaitable<void> never_ends() {
  asio::steady_timer alarm(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await alarm.async_wait(asio::use_awaitable);
}

/// The command under its lease. What happens first decides: it ends, a signal comes, or the lock is lost.
class supervision {
 public:
  supervision(const run_options& options, child_process& child, const lease& held)
      : options_(options), child_(child), held_(held) {}

  /// Until the command has ended.
  asio::awaitable<void> run(asio::signal_set& signals, asio::signal_set& deaths) {
    using namespace asio::experimental::awaitable_operators;
    co_await (await_end(deaths) || forward(signals) || await_loss());
  }
  /// The lock was lost while the command ran, and the command was ended for that.
  bool ended_for_loss() const noexcept { return lost_ && options_.lost != on_lost::warn; }

 private:
  asio::awaitable<void> await_end(asio::signal_set& deaths) {
    for (;;) {
      const auto now = child_.look();
      if (now == child_process::state::has_ended) co_return;
      if (now == child_process::state::was_stopped) let_go_on();
      co_await deaths.async_wait(asio::use_awaitable);
    }
  }

  asio::awaitable<void> forward(asio::signal_set& signals) {
    for (;;) {
      const int number = co_await signals.async_wait(asio::use_awaitable);
      number == SIGCONT ? let_go_on() : child_.signal_group(number);
    }
  }

  /// After a stop. If the lease has ended, the loss comes first.
  void let_go_on() const {
    if (held_.held() || lost_) child_.signal_group(SIGCONT);
  }

  asio::awaitable<void> await_loss() {
    co_await held_.lost();
    lost_ = true;
    child_.announce_loss();
    notify(options_, "lost", "the lock is lost");
    if (options_.lost == on_lost::term) child_.signal_group(SIGTERM);
    if (options_.lost == on_lost::kill) child_.signal_group(SIGKILL);
    child_.signal_group(SIGCONT);  // a stopped command cannot end
    if (options_.lost == on_lost::term) {
      co_await pause(options_.grace);
      notify(options_, "killed", "the command did not end within its grace");
      child_.signal_group(SIGKILL);
    }
    co_await never_ends();
  }

  const run_options& options_;
  child_process& child_;
  const lease& held_;
  bool lost_ = false;
};

std::vector<std::pair<std::string, std::string>> variables_of(const run_options& options, const config& settings,
                                                              const lease& held) {
  return {{"HOLDFAST_LOCK_NAME", held.name()},
          {"HOLDFAST_LOCK_KIND", kind_of(options.acquire.lock, settings)},
          {"HOLDFAST_LOCK_ID", held.id()},
          {"HOLDFAST_FENCE_TOKEN", held.token() ? std::to_string(*held.token()) : ""}};
}

asio::awaitable<int> run_under(const run_options& options, const config& settings, lease held, job_signals& signals) {
  asio::signal_set deaths(co_await asio::this_coro::executor, SIGCHLD);
  // The command is stopped and continued. We follow it: see child_process.
  signals.include(SIGTSTP);
  signals.include(SIGCONT);
  int status = 0;
  bool ended_for_loss = false;
  try {
    child_process child(options.command, variables_of(options, settings, held));
    supervision supervised(options, child, held);
    co_await supervised.run(signals, deaths);
    ended_for_loss = supervised.ended_for_loss();
    status = child.finish(ended_for_loss);
  } catch (const start_failure& failure) {
    notify(options, "not started", failure.what());
    status = failure.status;
  }
  if (ended_for_loss) co_return lost;
  const auto released = co_await as_result(held.unlock());
  if (released.has_error() && released.error() == errc::lost && options.lost != on_lost::warn) {
    notify(options, "lost", "the lock was lost before the command ended");
    co_return lost;
  }
  if (released.has_error() && released.error() != errc::lost)
    notify(options, "unconfirmed", "Redis does not confirm the release: the lock ends with its TTL");
  co_return status;
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
