// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <csignal>
#include <utility>

#include <holdfast/with_lock.hpp>

#include "cli/acquisition.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {
namespace {

void report(const hold_options& options, const char* state, const lease& held) {
  const auto& given = options.acquire;
  if (given.access.json) {
    json::object line;
    line["event"] = state;
    put_bytes(line, "name", given.lock.name);
    line["id"] = held.id();
    put_if(line, "token", held.token());
    print(line);
    return;
  }
  const auto token = held.token() ? ", token " + std::to_string(*held.token()) : std::string();
  print(shown(given.lock.name) + ": " + state + ", id " + held.id() + token);
}

void report_busy(const access_options& access, const std::string& name) {
  if (access.json) {
    json::object line;
    line["event"] = "busy";
    put_bytes(line, "name", name);
    print(line);
  } else {
    complain(shown(name) + " is busy");
  }
}

/// A signal, the end of the time, or the loss of the lock.
asio::awaitable<bool> is_lost_before_the_end(const lease& held, asio::signal_set& signals,
                                             std::optional<milliseconds> duration) {
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer over(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  if (duration) over.expires_after(*duration);
  const auto first =
      co_await (held.lost() || signals.async_wait(asio::use_awaitable) || over.async_wait(asio::use_awaitable));
  co_return first.index() == 0;
}

}  // namespace

asio::awaitable<int> hold(hold_options options) {
  const auto executor = co_await asio::this_coro::executor;
  const auto settings = config_of(options.acquire);
  client redis(executor, settings);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that is gone must not leave the key until its TTL ends
  job_signals signals(executor);
  auto made = co_await acquire(redis, options.acquire, settings, signals);
  int status = done;
  if (made.held) {
    report(options, "held", *made.held);
    if (co_await is_lost_before_the_end(*made.held, signals, options.duration)) {
      status = lost;
    } else {
      const auto released = co_await as_result(made.held->unlock());
      if (released.has_error() && released.error() != errc::unconfirmed) status = status_of(released.error());
    }
    report(options, status == done ? "released" : "lost", *made.held);
  } else if (made.signal != 0) {
    status = signalled + made.signal;
  } else {
    report_busy(options.acquire.access, options.acquire.lock.name);
    status = busy;
  }
  co_await redis.shutdown(milliseconds(500));
  co_return status;
}

asio::awaitable<int> wait(wait_options options) {
  using std::chrono::steady_clock;
  const auto executor = co_await asio::this_coro::executor;
  const auto settings = config_of(options.access);
  client redis(executor, settings);
  check(options.lock, settings);
  // A reader needs the writer to end, and a writer needs the key to be free, as that of a mutex.
  options.lock.exclusive = std::exchange(options.lock.shared, false);
  const auto lock = mutex_of(redis, options.lock, settings);
  const auto begin = steady_clock::now();
  milliseconds pause(20);
  const auto ask = [&] { return lock.is_locked(); };
  bool locked = co_await first_call<bool>(settings, ask);
  // Polls alone: a subscription would count as a waiter, and clients would leave it time for a turn.
  while (locked) {
    const auto waited = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
    if (options.wait && waited >= *options.wait) break;
    asio::steady_timer alarm(executor, options.wait ? std::min(pause, *options.wait - waited) : pause);
    co_await alarm.async_wait(asio::use_awaitable);
    pause = std::min(2 * pause, milliseconds(250));
    locked = co_await lock.is_locked();
  }
  if (locked) {
    report_busy(options.access, options.lock.name);
  } else if (options.access.json) {
    json::object line;
    line["event"] = "free";
    put_bytes(line, "name", options.lock.name);
    print(line);
  } else {
    print(shown(options.lock.name) + " is free");
  }
  co_await redis.shutdown(milliseconds(500));
  co_return locked ? busy : done;
}

}  // namespace holdfast::cli
