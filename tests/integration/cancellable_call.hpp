// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <optional>

#include "integration/world.hpp"

namespace holdfast::test {

/// An operation under way that can be cancelled.
template <class T>
struct cancellable_call {
  cancellable_call(client_side& w, asio::awaitable<T> op) : io(w.io) {
    auto ended = [this](std::exception_ptr, result<T> r) { answer.emplace(std::move(r)); };
    asio::co_spawn(io, as_result(std::move(op)), asio::bind_cancellation_slot(signal.slot(), ended));
  }
  // From inside the context: co_spawn hands an emission from elsewhere over with a pointer that may be stale by then
  // (Boost 1.81).
  void cancel() {
    asio::post(io, [this] { signal.emit(asio::cancellation_type::terminal); });
  }
  asio::io_context& io;
  asio::cancellation_signal signal;
  std::optional<result<T>> answer;
};

}  // namespace holdfast::test
