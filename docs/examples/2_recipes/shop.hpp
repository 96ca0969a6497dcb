// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <string>
#include <utility>

#include "within.hpp"

/// Ships orders, each by one request at a time, over all processes.
class shop {
  template <class T>
  using awaitable = boost::asio::awaitable<T>;

 public:
  explicit shop(holdfast::client& redis) : redis_(redis) {}

  struct answer {
    unsigned status;  // HTTP's
    std::string text;
  };
  /// 200: shipped. 409: another request was at it for 200 ms. 500: the lock was lost, and the work was cancelled.
  /// 503: come again, for Redis did not answer, there was no time left, or the client is closing. The order may have
  /// been charged by then: a shop looks it up by its number before it charges.
  /// Takes 2.5 s at most: the unlock of what is done by 2 s may have to wait for a command timeout.
  awaitable<answer> ship(std::string order) {
    auto mutex = redis_.mutex(order);
    auto body = [&](holdfast::lease&) { return under_lock(order); };
    auto task = holdfast::try_with_lock_for(mutex, std::chrono::milliseconds(200), body);
    const auto shipped = co_await within(std::chrono::seconds(2), std::move(task));
    if (shipped.has_error())
      co_return answer{shipped.error() == holdfast::errc::lost ? 500u : 503u, shipped.error().message()};
    if (!*shipped) co_return answer{409, "busy"};
    co_return answer{200, **shipped};
  }

 private:
  static awaitable<void> work(int milliseconds) {
    boost::asio::steady_timer job(co_await boost::asio::this_coro::executor, std::chrono::milliseconds(milliseconds));
    co_await job.async_wait(boost::asio::use_awaitable);
  }

  awaitable<std::string> under_lock(std::string order) {
    co_await work(100);
    co_await charge(order);
    co_await work(400);
    std::cout << "shipped " << order << std::endl;
    co_return "shipped";
  }

  awaitable<void> charge(std::string order) {
    auto mutex = redis_.mutex(order);
    auto lease = co_await mutex.lock();  // under_lock() has it already: re-entry, not deadlock
    co_await work(100);
    co_await lease.unlock();
  }

  holdfast::client& redis_;
};
