// SPDX-License-Identifier: BSL-1.0
#include "chaos/observer_task.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <chrono>
#include <utility>
#include <variant>

#include "chaos/pause.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

constexpr auto longest_call = 1s;
constexpr auto after_failure = 20ms;

}  // namespace

asio::awaitable<void> observer_task::run() {
  auto known = co_await see_first();
  while (!place_.stopping) {
    auto next = co_await see_next(known);
    known = std::move(next);
  }
}

asio::awaitable<observer_task::known_leader> observer_task::see_first() {
  while (!place_.stopping) {
    const auto operation = begin();
    auto found = co_await as_result(election_.leader());
    if (found) {
      end(operation, *found);
      co_return std::move(*found);
    }
    co_await pause(after_failure);
  }
  co_return std::nullopt;
}

// A call that is cancelled has seen no change: the next one begins where it began.
asio::awaitable<observer_task::known_leader> observer_task::see_next(known_leader after) {
  using namespace asio::experimental::awaitable_operators;
  const auto operation = begin();
  auto change = as_result(election_.next(after));
  auto limit = pause(longest_call);
  auto first = co_await (std::move(change) || std::move(limit));
  auto* found = std::get_if<0>(&first);
  if (!found) co_return after;
  if (!*found) {
    co_await pause(after_failure);
    co_return after;
  }
  end(operation, **found);
  co_return std::move(**found);
}

std::uint64_t observer_task::begin() {
  const auto operation = place_.next_operation();
  place_.log.write("observe").add("op", operation);
  return operation;
}

void observer_task::end(std::uint64_t operation, const known_leader& leader) {
  auto line = place_.log.write("observed");
  line.add("op", operation).add("term", leader ? leader->term : 0);
  if (leader) line.add("value", leader->value);
}

}  // namespace holdfast::chaos
