// SPDX-License-Identifier: BSL-1.0
#include "chaos/kept_task.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "chaos/pause.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kinds = 3;
constexpr auto between_checks = 20ms;

mutex lock_of(const client& redis, std::size_t kind, const std::string& name) {
  if (kind == 0) return redis.mutex(name);
  if (kind == 1) return redis.fenced_mutex(name);
  return redis.simple_mutex(name);
}

}  // namespace

kept_task::kept_task(workplace& place, client& redis, milliseconds ttl, std::size_t number)
    : place_(place), redis_(redis), ttl_(ttl), number_(number) {}

asio::awaitable<void> kept_task::run() {
  for (auto round = number_; !place_.stopping; ++round) co_await hold(round);
}

asio::awaitable<void> kept_task::hold(std::size_t round) {
  const auto kind = round % kinds;
  const auto name = std::string(kept_names) + std::to_string(number_) + '-' + std::to_string(kind);
  const auto lock = lock_of(redis_, kind, name);
  auto granted = co_await as_result(lock.try_lock_for(1s));
  if (!granted || !*granted) {
    co_await pause(between_checks);
    co_return;
  }
  auto held = std::move(**granted);
  const auto operation = place_.next_operation();
  place_.log.write("kept").add("op", operation).add("lock", name).add("ttl", ttl_.count());
  const auto lost = std::make_shared<bool>(false);
  auto listen = [](workplace& place, std::uint64_t op, asio::awaitable<error_code> loss,
                   std::shared_ptr<bool> heard) -> asio::awaitable<void> {
    const auto why = co_await as_result(std::move(loss));
    if (!why) co_return;
    *heard = true;
    place.log.write("kept_lost").add("op", op);
  };
  asio::co_spawn(co_await asio::this_coro::executor, listen(place_, operation, held.lost(), lost), asio::detached);
  while (!place_.stopping && !*lost) co_await pause(between_checks);
  if (!*lost) place_.log.write("kept_no_longer").add("op", operation);
  co_await as_result(held.unlock());
}

}  // namespace holdfast::chaos
