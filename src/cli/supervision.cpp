// SPDX-License-Identifier: BSL-1.0
#include "cli/supervision.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/serialize.hpp>

#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/child_process.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

// A notice that would wait for its reader is dropped: see supervision.hpp.
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

namespace {

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
    const auto read_now = child_.stops();
    asio::posix::stream_descriptor stops(co_await asio::this_coro::executor,
                                         ::signalfd(-1, &read_now, SFD_NONBLOCK | SFD_CLOEXEC));
    co_await (await_end(deaths) || forward(signals) || follow(stops) || await_loss());
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
      child_.signal_group(number);
    }
  }

  /// We are stopped with the command, not before it: see child_process.
  asio::awaitable<void> follow(asio::posix::stream_descriptor& stops) {
    for (;;) {
      co_await stops.async_wait(stops.wait_read, asio::use_awaitable);
      signalfd_siginfo seen{};
      while (::read(stops.native_handle(), &seen, sizeof seen) == sizeof seen)
        seen.ssi_signo == SIGCONT ? let_go_on() : child_.signal_group(SIGTSTP);
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

}  // namespace

asio::awaitable<command_end> run_command(const run_options& options, const config& settings, const lease& held,
                                         job_signals& signals) {
  asio::signal_set deaths(co_await asio::this_coro::executor, SIGCHLD);
  command_end end;
  try {
    child_process child(options.command, variables_of(options, settings, held));
    supervision supervised(options, child, held);
    co_await supervised.run(signals, deaths);
    end.for_loss = supervised.ended_for_loss();
    end.status = child.finish(end.for_loss);
  } catch (const start_failure& failure) {
    notify(options, "not started", failure.what());
    end.status = failure.status;
    end.started = false;
  }
  co_return end;
}

}  // namespace holdfast::cli
