// SPDX-License-Identifier: BSL-1.0
// Honest contention: processes whose tasks want one name, hold it for a moment and think before they want it again. The
// ideal is one task that holds as often as it can without a lock. Where clients race for each hold, and where they take
// turns.
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "bench/child_run.hpp"
#include "bench/meter.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::real_redis;

constexpr auto hold = 1ms, think = 3ms;
constexpr auto get_ready = 500ms;  // to connect, before all start at once
constexpr int all_tasks = 16;

struct shift {
  clock::time_point begin, end;
};

struct crew {
  int processes;
  bool turns;  // config::turns
  int tasks() const { return all_tasks / processes; }
};

struct tasks_result {
  std::array<long, all_tasks> acquired{};  // by each task of the process
};

asio::awaitable<void> pause(asio::steady_timer& timer, clock::duration how_long) {
  timer.expires_after(how_long);
  co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> contend(client& redis, shift when, long& acquired) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  auto mutex = redis.mutex("bench:contended");
  co_await pause(timer, when.begin - clock::now());
  while (clock::now() < when.end) {
    auto held = co_await mutex.lock();
    co_await pause(timer, hold);
    co_await held.unlock();
    ++acquired;
    co_await pause(timer, think);
  }
}

void contending_process(const real_redis& server, shift when, crew who, const teller<tasks_result>& tell) {
  asio::io_context io(1);
  auto settings = of_url(server.unix_url());
  settings.turns = who.turns;
  auto redis = make_client(io, std::move(settings));
  tasks_result r;
  for (int t = 0; t < who.tasks(); ++t)
    asio::co_spawn(io, contend(redis, when, r.acquired[static_cast<std::size_t>(t)]), rethrow);
  io.run();
  tell(r);
}

asio::awaitable<void> hold_without_lock(shift when, long& held) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (; clock::now() < when.end; ++held) co_await pause(timer, hold);
}

double ideal_rate(clock::duration how_long) {
  asio::io_context io(1);
  long held = 0;
  const auto now = clock::now();
  asio::co_spawn(io, hold_without_lock({now, now + how_long}, held), rethrow);
  io.run();
  return static_cast<double>(held) / seconds_since(now);
}

struct contended {
  double rate = 0, scripts = 0, least_share = 0;
};

contended run(crew who, clock::duration how_long) {
  const real_redis server;
  load_scripts(server);
  test::raw_client admin(server);
  const auto begin = clock::now() + get_ready;
  const shift when{begin, begin + how_long};
  std::vector<std::unique_ptr<child_run<tasks_result>>> all;
  for (int i = 0; i < who.processes; ++i)
    all.push_back(std::make_unique<child_run<tasks_result>>(
        [&](const teller<tasks_result>& tell) { contending_process(server, when, who, tell); }));
  std::this_thread::sleep_until(begin - get_ready / 10);
  admin("CONFIG", "RESETSTAT");
  std::vector<long> acquired;
  for (const auto& child : all) {
    const auto r = child->result_until(when.end + plan::patience);
    acquired.insert(acquired.end(), r.acquired.begin(), r.acquired.begin() + who.tasks());
  }
  const auto sum = static_cast<double>(std::reduce(acquired.begin(), acquired.end()));
  return {sum / std::chrono::duration<double>(how_long).count(), static_cast<double>(scripts_run(admin)) / sum,
          static_cast<double>(*std::ranges::min_element(acquired)) * all_tasks / sum};
}

std::vector<finding> contention(const plan& p, const std::string& name, crew who) {
  const std::chrono::milliseconds how_long(p.scaled(3'000) + 200);
  std::vector<double> rate, ideal, scripts, share;
  p.rounds(name, [&] {
    const auto r = run(who, how_long);
    rate.push_back(r.rate);
    scripts.push_back(r.scripts);
    share.push_back(r.least_share);
    ideal.push_back(ideal_rate(how_long / 3));
  });
  return {
      {median(rate) / median(ideal), {{"holdfast", median(rate)}, {"ideal", median(ideal)}, {"rounds", rate.size()}}},
      {median(scripts) - (who.turns ? 0 : 1)},  // where each hold has a release of its own, the acquires
      {median(share)}};
}

/// Acquisitions per second, commands for each, and the least waiter's share.
struct kept {
  std::optional<limit> rate{}, commands{}, share{};
};

scenario contention_of(const std::string& name, crew who, kept bounds = {}) {
  const auto* const counted = who.turns ? "scripts / acquisition" : "acquire commands / acquisition";
  return {name,
          {{name + "/rate", "acquisitions/s / ideal", bounds.rate},
           {name + "/commands", counted, bounds.commands},
           {name + "/share", "least waiter's share / fair", bounds.share}},
          [=](const plan& p) { return contention(p, name, who); }};
}

}  // namespace

std::vector<scenario> contention_scenarios() {
  return {contention_of("contention-2", {2, false}), contention_of("contention-8", {8, false}),
          contention_of("local-16", {1, true}, {at_least(0.98), at_most(0.25), at_least(0.95)}),
          contention_of("procs-2", {2, true}, {at_least(0.88), at_most(0.5), at_least(0.95)}),
          contention_of("procs-8", {8, true}, {at_least(0.80), at_most(2), at_least(0.95)})};
}

}  // namespace holdfast::bench
