// SPDX-License-Identifier: BSL-1.0
#include "chaos/latch_task.hpp"

#include <chrono>

#include "chaos/pause.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds round_lasts = 1s;
/// Of a latch: so large that the workers need a part of the round.
constexpr std::uint32_t count = 40;
constexpr auto between_looks = 20ms;
constexpr std::chrono::microseconds think = 20ms;
constexpr milliseconds least_wait{1}, longest_wait{1500};

std::uint64_t round_of(instant t) { return static_cast<std::uint64_t>(t / round_lasts.count()); }

}  // namespace

latch_task::latch_task(workplace& place, client& redis, std::size_t number, std::size_t tasks, std::uint64_t seed)
    : place_(place), redis_(redis), number_(number), tasks_(tasks), dice_(seed) {}

asio::awaitable<void> latch_task::run() {
  // An earlier life of this worker may have set the latch of this round.
  for (auto last = round_of(now()); !place_.stopping;) {
    const auto round = round_of(now());
    if (round == last) {
      co_await pause(between_looks);
      continue;
    }
    co_await take_part(last = round);
  }
}

bool latch_task::over(std::uint64_t round) const { return place_.stopping || round_of(now()) != round; }

asio::awaitable<void> latch_task::take_part(std::uint64_t round) {
  const auto common = redis_.latch(std::string(latch_names) + std::to_string(round));
  if (round % tasks_ == number_) co_await set(common);
  if (!co_await see_closed(common, round)) co_return;
  const bool waits_only = dice_.per_mille(300);
  while (!waits_only && !over(round)) {
    co_await pause(dice_.around(think));
    co_await count_down(common);
    if (dice_.per_mille(200) && co_await is_open(common)) break;
  }
  co_await wait(common);
}

asio::awaitable<bool> latch_task::see_closed(const latch& common, std::uint64_t round) {
  while (!over(round)) {
    const auto operation = begin(common, "count", 0);
    const auto left = co_await as_result(common.count());
    end(operation, left ? error_code() : left.error(), left ? *left : 0);
    if (left && *left > 0) co_return true;
    co_await pause(between_looks);
  }
  co_return false;
}

asio::awaitable<void> latch_task::set(const latch& common) {
  const auto operation = begin(common, "set", count);
  const auto done = co_await as_result(common.try_set(count));
  end(operation, done ? error_code() : done.error(), done && *done ? 1 : 0);
}

asio::awaitable<void> latch_task::count_down(const latch& common) {
  const auto n = static_cast<std::uint32_t>(1 + dice_.below(2));
  const auto operation = begin(common, "count_down", n);
  const auto done = co_await as_result(common.count_down(n));
  end(operation, done ? error_code() : done.error());
}

asio::awaitable<bool> latch_task::is_open(const latch& common) {
  const auto operation = begin(common, "count", 0);
  const auto left = co_await as_result(common.count());
  end(operation, left ? error_code() : left.error(), left ? *left : 0);
  co_return left&&* left == 0;
}

asio::awaitable<void> latch_task::wait(const latch& common) {
  const auto longest = dice_.between(least_wait, longest_wait);
  const auto operation = begin(common, "wait", static_cast<std::uint64_t>(longest.count()));
  const auto open = co_await as_result(common.wait_for(longest));
  end(operation, open ? error_code() : open.error(), open && *open ? 1 : 0);
}

std::uint64_t latch_task::begin(const latch& common, std::string_view verb, std::uint64_t number) {
  const auto operation = place_.next_operation();
  place_.log.write("latch").add("op", operation).add("latch", common.name()).add("verb", verb).add("number", number);
  return operation;
}

void latch_task::end(std::uint64_t operation, const error_code& failed, std::uint64_t value) {
  auto line = place_.log.write("latch_answer");
  line.add("op", operation);
  if (failed)
    line.add("error", failed.message());
  else
    line.add("value", value);
}

}  // namespace holdfast::chaos
