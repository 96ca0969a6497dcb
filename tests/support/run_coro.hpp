// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace holdfast::test {

namespace asio = boost::asio;

inline constexpr std::chrono::seconds coroutine_limit{20};

namespace detail_run {

template <class T>
struct outcome {
  std::exception_ptr failed;
  std::optional<std::conditional_t<std::is_void_v<T>, std::monostate, T>> result;
};

}  // namespace detail_run

/// Runs `io` in this thread until it has no work left. Throws when that takes longer than `limit`: something holds it.
inline void drain(asio::io_context& io, std::chrono::milliseconds limit = coroutine_limit) {
  if (io.stopped()) io.restart();
  io.run_for(limit);
  if (!io.stopped())
    throw std::runtime_error("the io_context still has work after " + std::to_string(limit.count()) + " ms");
}

/// Runs `io` in this thread until `op`, spawned on `executor`, has finished; its value or its exception. What else the
/// context has to do stays there: see drain(). Never hangs: throws std::runtime_error after `limit`, and when the
/// context ran out of work before.
template <class T>
T run(asio::io_context& io, asio::any_io_executor executor, asio::awaitable<T> op,
      std::chrono::milliseconds limit = coroutine_limit) {
  const auto done =
      std::make_shared<detail_run::outcome<T>>();  // shared: after a timeout the coroutine may still finish
  if constexpr (std::is_void_v<T>) {
    auto finish = [done](std::exception_ptr failed) {
      done->failed = failed;
      done->result.emplace();
    };
    asio::co_spawn(executor, std::move(op), std::move(finish));
  } else {
    auto finish = [done](std::exception_ptr failed, T value) {
      done->failed = failed;
      done->result.emplace(std::move(value));
    };
    asio::co_spawn(executor, std::move(op), std::move(finish));
  }
  const auto deadline = std::chrono::steady_clock::now() + limit;
  if (io.stopped()) io.restart();
  while (!done->result && io.run_one_until(deadline) != 0) {
  }
  if (!done->result) {
    if (io.stopped()) throw std::runtime_error("the io_context ran out of work, and the coroutine has not finished");
    throw std::runtime_error("the coroutine has not finished after " + std::to_string(limit.count()) + " ms");
  }
  if (done->failed) std::rethrow_exception(done->failed);
  if constexpr (!std::is_void_v<T>) return std::move(*done->result);
}

template <class T>
T run(asio::io_context& io, asio::awaitable<T> op, std::chrono::milliseconds limit = coroutine_limit) {
  return run(io, asio::any_io_executor(io.get_executor()), std::move(op), limit);
}

}  // namespace holdfast::test
