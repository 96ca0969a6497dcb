// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <holdfast/holdfast.hpp>
#include <string>
#include <utility>

/// One process, as far as Redis can tell: a client that does nothing between two calls of run().
struct process {
  explicit process(const std::string& url) : process(holdfast::config{.url = url}) {}
  explicit process(holdfast::config settings) : redis{io.get_executor(), std::move(settings)} {}

  template <class T>
  T run(boost::asio::awaitable<T> work) {
    auto result = boost::asio::co_spawn(io, std::move(work), boost::asio::use_future);
    io.restart();
    while (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) io.run_one();
    return result.get();
  }

  boost::asio::io_context io;
  holdfast::client redis;
};
