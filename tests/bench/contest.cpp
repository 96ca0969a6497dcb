// SPDX-License-Identifier: BSL-1.0
#include "bench/contest.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <holdfast/blocking.hpp>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "bench/baselines.hpp"
#include "bench/child_run.hpp"
#include "bench/redisson_jvm.hpp"
#include "bench/scenario.hpp"
#include "bench/witness.hpp"
#include "bench/work.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::real_redis;

constexpr int most_tasks = 128;
constexpr auto contended_name = "bench:contended";

struct shift {
  clock::time_point begin, end;
};

struct tasks_result {
  std::array<long, most_tasks> acquired{};  // by each task of the process
  double longest_wait = 0;                  // in seconds
};

asio::awaitable<void> pause(asio::steady_timer& timer, clock::duration how_long) {
  timer.expires_after(how_long);
  co_await timer.async_wait(asio::use_awaitable);
}

/// One that contends with a client of ours.
class own_task {
 public:
  own_task(client& redis, bool fair)
      : mutex_(fair ? mutex(redis.fair_mutex(contended_name)) : redis.mutex(contended_name)) {}
  asio::awaitable<void> lock() { held_ = co_await mutex_.lock(); }
  asio::awaitable<void> unlock() { co_await held_.unlock(); }

 private:
  mutex mutex_;
  lease held_;
};

class redisson_task {
 public:
  redisson_task(redisson_process& redis, int thread) : redis_(redis), thread_(thread) {}
  asio::awaitable<void> lock() { return redis_.lock(thread_); }
  asio::awaitable<void> unlock() { return redis_.unlock(thread_); }

 private:
  redisson_process& redis_;
  const int thread_;
};

/// What a task does, and what it tells of.
struct contender {
  shift when;
  crew of;
  int process;
  witness& seen;
};

template <class Task>
asio::awaitable<void> contend(Task with, contender who, long& acquired, double& longest_wait) {
  const auto [when, of, process, seen] = who;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  co_await pause(timer, when.begin - clock::now());
  while (clock::now() < when.end) {
    const auto asked = clock::now();
    co_await with.lock();
    longest_wait = std::max(longest_wait, seconds_since(asked));
    seen.enter(process, asked);
    if (of.hold > 0us) co_await pause(timer, of.hold);
    seen.leave();
    co_await with.unlock();
    ++acquired;
    if (of.think > 0us) co_await pause(timer, of.think);
  }
}

void contending_process(const real_redis& server, const contender& each, const teller<tasks_result>& tell) {
  asio::io_context io(1);
  auto settings = of_url(server.url());
  settings.turns = each.of.turns;
  auto redis = make_client(io, std::move(settings));
  tasks_result r;
  for (int t = 0; t < each.of.tasks(); ++t)
    asio::co_spawn(
        io, contend(own_task(redis, each.of.fair), each, r.acquired[static_cast<std::size_t>(t)], r.longest_wait),
        rethrow);
  io.run();
  tell(r);
}

void contend_in_thread(blocking::mutex mutex, contender who, long& acquired, double& longest_wait) {
  const auto [when, of, process, seen] = who;
  std::this_thread::sleep_until(when.begin);
  while (clock::now() < when.end) {
    const auto asked = clock::now();
    mutex.lock();
    longest_wait = std::max(longest_wait, seconds_since(asked));
    seen.enter(process, asked);
    std::this_thread::sleep_for(of.hold);
    seen.leave();
    mutex.unlock();
    ++acquired;
    std::this_thread::sleep_for(of.think);
  }
}

void contending_threads(const real_redis& server, const contender& each, const teller<tasks_result>& tell) {
  auto settings = of_url(server.url());
  settings.turns = each.of.turns;
  blocking::client redis(std::move(settings));
  redis.connect();
  tasks_result r;
  std::array<double, most_tasks> waits{};
  {
    std::vector<std::jthread> all;
    for (std::size_t t = 0; t < static_cast<std::size_t>(each.of.tasks()); ++t)
      all.emplace_back([&, t] { contend_in_thread(redis.mutex(contended_name), each, r.acquired[t], waits[t]); });
  }
  r.longest_wait = std::ranges::max(waits);
  tell(r);
}

void contending_redisson(const real_redis& server, const contender& each, const teller<tasks_result>& tell) {
  asio::io_context io(1);
  redisson_process redis(io, server.socket_path(), contended_name);
  tasks_result r;
  int open = each.of.tasks();
  for (int t = 0; t < each.of.tasks(); ++t)
    asio::co_spawn(io, contend(redisson_task(redis, t), each, r.acquired[static_cast<std::size_t>(t)], r.longest_wait),
                   [&](std::exception_ptr failed) {
                     rethrow(failed);
                     if (--open == 0) redis.stop();
                   });
  io.run();
  tell(r);
}

asio::awaitable<void> hold_without_lock(shift when, std::chrono::microseconds hold, long& held) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (; clock::now() < when.end; ++held) co_await pause(timer, hold);
}

/// Redisson knows no unix socket.
test::redis_options server_for(crew who) { return who.jvm ? with_tcp({}) : test::redis_options(); }

}  // namespace

double ideal_rate(std::chrono::microseconds hold, milliseconds how_long) {
  asio::io_context io(1);
  long held = 0;
  const auto now = clock::now();
  asio::co_spawn(io, hold_without_lock({now, now + how_long}, hold, held), rethrow);
  io.run();
  return static_cast<double>(held) / seconds_since(now);
}

contended run(crew who, std::chrono::milliseconds how_long) {
  const real_redis server(server_for(who));
  load_scripts(server);
  test::raw_client admin(server);
  witness seen(who.processes);
  std::vector<std::unique_ptr<redisson_jvm>> jvms;
  for (int i = 0; who.jvm && i < who.redissons; ++i)
    jvms.push_back(std::make_unique<redisson_jvm>(redisson_jvm::work{
        server.url(), contended_name, seen.path(), who.tasks(), std::chrono::duration_cast<milliseconds>(who.hold),
        std::chrono::duration_cast<milliseconds>(who.think)}));
  const auto begin = clock::now() + get_ready;
  const shift when{begin, begin + how_long};
  for (const auto& jvm : jvms) jvm->work_for(how_long, get_ready);
  std::vector<std::unique_ptr<child_run<tasks_result>>> all;
  for (int i = static_cast<int>(jvms.size()); i < who.processes; ++i)
    all.push_back(std::make_unique<child_run<tasks_result>>([&, i](const teller<tasks_result>& tell) {
      const contender each{when, who, i, seen};
      const auto work = i < who.redissons ? contending_redisson : who.threads ? contending_threads : contending_process;
      work(server, each, tell);
    }));
  std::optional<child_run<idle_trips>> idle;
  if (!who.tight())
    idle.emplace([&](const teller<idle_trips>& tell) {
      tell(bare_trips_now_and_then(server.socket_path(), when.begin, when.end));
    });
  std::this_thread::sleep_until(begin - get_ready / 10);
  admin("CONFIG", "RESETSTAT");
  std::vector<long> acquired;
  double longest_wait = 0, own_wait = 0;
  int counted = 0;
  const auto count = [&](const auto& r) {
    const auto tasks = std::span(r.acquired).first(static_cast<std::size_t>(who.tasks()));
    acquired.insert(acquired.end(), tasks.begin(), tasks.end());
    longest_wait = std::max(longest_wait, r.longest_wait);
    if (counted++ >= who.redissons) own_wait = std::max(own_wait, r.longest_wait);
  };
  for (const auto& jvm : jvms) count(jvm->result_until(when.end + plan::patience));
  for (const auto& child : all) count(child->result_until(when.end + plan::patience));
  const auto trips = idle ? idle->result_until(when.end + plan::patience) : idle_trips();
  if (seen.overlaps()) throw std::runtime_error("two held the lock at once");
  const auto sum = static_cast<double>(std::reduce(acquired.begin(), acquired.end()));
  const auto ours = static_cast<double>(std::reduce(acquired.begin() + who.redissons * who.tasks(), acquired.end()));
  return {sum / std::chrono::duration<double>(how_long).count(),
          static_cast<double>(commands_run(admin) - 2 * trips.pairs) / sum,
          static_cast<double>(scripts_run(admin) - 2 * trips.pairs) / sum,
          static_cast<double>(*std::ranges::min_element(acquired)) * who.all_tasks / sum,
          ours * who.processes / (sum * (who.processes - who.redissons)),
          longest_wait,
          own_wait,
          seen.longest_burst(),
          static_cast<double>(seen.most_turns()),
          seen.hand_over_p50(),
          seen.own_hand_over_p50(),
          trips.median_us};
}

}  // namespace holdfast::bench
