// SPDX-License-Identifier: BSL-1.0
#include "bench/pairs.hpp"

#include <holdfast/blocking.hpp>
#include <mutex>
#include <utility>

#include "bench/work.hpp"

namespace holdfast::bench {
namespace {

/// What the tasks have in common.
struct workload {
  client& redis;
  long left;
  laps* each;  // null: nobody asks
  lock_options options{};
};

asio::awaitable<void> lock_one_name(workload& all, int slot) {
  auto mutex = all.redis.mutex(name_of(slot));
  auto begun = clock::now();
  while (all.left-- > 0) {
    auto held = co_await mutex.lock(all.options);
    co_await held.unlock();
    if (all.each) all.each->push_back(lap_us(begun));
  }
}

asio::awaitable<void> lock_new_names(workload& all) {
  while (all.left > 0) {
    auto mutex = all.redis.mutex(name_of(--all.left));
    auto held = co_await mutex.lock();
    co_await held.unlock();
  }
}

pair_cost pairs_of(config settings, const std::string& path, int width, long pairs, names which, lock_options options) {
  asio::io_context io(1);
  auto redis = make_client(io, std::move(settings));
  test::raw_client admin(path);
  laps each;
  if (width == 1) each.reserve(static_cast<std::size_t>(pairs));
  workload all{redis, pairs, width == 1 ? &each : nullptr, options};
  meter m(admin);
  for (int s = 0; s < width; ++s)
    asio::co_spawn(io, which == names::of_tasks ? lock_one_name(all, s) : lock_new_names(all), rethrow);
  io.run();
  return per_pair(m.stop(), pairs, std::move(each));
}

}  // namespace

pair_cost holdfast_pairs(const std::string& path, int width, long pairs, names which,
                         std::shared_ptr<observer> seen_by) {
  auto settings = of_url("redis+unix://" + path);
  settings.observer = std::move(seen_by);
  return pairs_of(std::move(settings), path, width, pairs, which, {});
}

pair_cost noted_pairs(const std::string& path, int width, long pairs, std::string_view note) {
  auto settings = of_url("redis+unix://" + path);
  settings.notes = true;
  return pairs_of(std::move(settings), path, width, pairs, names::of_tasks, {.note = note});
}

pair_cost blocking_mutex_pairs(const std::string& path, long pairs) {
  blocking::client redis(of_url("redis+unix://" + path));
  auto mutex = redis.mutex(name_of(0));
  { const std::lock_guard warm(mutex); }
  test::raw_client admin(path);
  laps each;
  each.reserve(static_cast<std::size_t>(pairs));
  meter m(admin);
  auto begun = clock::now();
  for (long i = 0; i < pairs; ++i) {
    {
      const std::lock_guard lock(mutex);
    }
    each.push_back(lap_us(begun));
  }
  return per_pair(m.stop(), pairs, std::move(each));
}

}  // namespace holdfast::bench
