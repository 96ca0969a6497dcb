// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <holdfast/holdfast.hpp>
#include <utility>

/// `task`, cancelled when `time` is over, and with it whatever it waits for: a lock(), the body of a with_lock(). What
/// it returns all the same counts, because it has happened: `task || timer` would forget it.
template <class T>
boost::asio::awaitable<holdfast::result<T>> within(std::chrono::milliseconds time, boost::asio::awaitable<T> task) {
  namespace asio = boost::asio;
  const auto here = co_await asio::this_coro::executor;
  asio::steady_timer timer(here, time);
  auto both = asio::experimental::make_parallel_group(
      asio::co_spawn(here, holdfast::as_result(std::move(task)), asio::deferred), timer.async_wait(asio::deferred));
  auto [order, failed, result, rang] =
      co_await both.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (failed) std::rethrow_exception(failed);
  co_return result;
}
