// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <optional>
#include <utility>
#include <variant>

namespace holdfast::cli {

namespace asio = boost::asio;

/// Work has ended, or a signal came.
template <class T>
struct ended_or_signalled {
  std::optional<T> result{};  // empty: a signal came
  int signal = 0;
};

inline asio::awaitable<void> note_next(asio::signal_set& signals, int& number) {
  number = co_await signals.async_wait(asio::use_awaitable);
}

/// Work that a signal cancels.
///
/// Decision: a signal that meets the end of the work counts. It has left the set, and `||` tells of the work alone: the
/// job would not hear of its end. The result is then destroyed.
///
/// The work may not throw: `||` waits on while the other side has not ended. Signals that come later stay in the set.
template <class T>
asio::awaitable<ended_or_signalled<T>> until_signal(asio::awaitable<T> work, asio::signal_set& signals) {
  using namespace asio::experimental::awaitable_operators;
  int number = 0;
  auto first = co_await (std::move(work) || note_next(signals, number));
  if (number != 0) co_return ended_or_signalled<T>{std::nullopt, number};
  co_return ended_or_signalled<T>{std::get<0>(std::move(first)), 0};
}

}  // namespace holdfast::cli
