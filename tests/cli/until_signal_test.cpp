// SPDX-License-Identifier: BSL-1.0
#include "cli/until_signal.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <csignal>

#include "support/catch.hpp"

using namespace holdfast::cli;

namespace {

/// Work during which a signal comes. It ends after so many turns of the loop, in which Asio passes the signal on.
asio::awaitable<bool> work_that_meets_a_signal(int turns) {
  std::raise(SIGUSR1);
  for (; turns > 0; --turns) co_await asio::post(asio::use_awaitable);
  co_return true;
}

asio::awaitable<void> race(int turns, asio::signal_set& signals, ended_or_signalled<bool>& end) {
  end = co_await until_signal(work_that_meets_a_signal(turns), signals);
}

}  // namespace

TEST_CASE("a signal that meets the end of the work is told, or is still there for the next wait") {
  bool work_was_first = false, signal_was_first = false;
  for (int turns = 0; turns < 20; ++turns) {
    INFO(turns << " turns");
    asio::io_context loop;
    asio::signal_set signals(loop, SIGUSR1);
    ended_or_signalled<bool> end;
    asio::co_spawn(loop, race(turns, signals, end), asio::detached);
    loop.run();
    loop.restart();
    int later = 0;
    signals.async_wait([&later](auto, int number) { later = number; });
    loop.poll();
    CHECK(end.signal + later == SIGUSR1);
    CHECK(end.result.has_value() == (end.signal == 0));
    (end.signal == 0 ? work_was_first : signal_was_first) = true;
  }
  CHECK(work_was_first);
  CHECK(signal_was_first);
}
