// SPDX-License-Identifier: BSL-1.0
// Contention for the permits of a semaphore. The ideal is as many tasks as there are permits, each of which holds as
// often as it can without a semaphore.
#include <algorithm>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/child_run.hpp"
#include "bench/contest.hpp"
#include "bench/meter.hpp"
#include "bench/scenario.hpp"
#include "bench/shared_memory.hpp"
#include "bench/work.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::real_redis;
using std::chrono::microseconds;

constexpr auto semaphore_name = "bench:permits";

/// Counts the permits that are held at once, by all processes.
class permit_witness {
 public:
  explicit permit_witness(unsigned permits) : permits_(permits) {}

  void enter(unsigned amount) noexcept {
    if (seen_->held.fetch_add(amount) + amount > permits_) seen_->exceeded = true;
  }
  void leave(unsigned amount) noexcept { seen_->held.fetch_sub(amount); }
  /// More permits were held at once than there are.
  bool exceeded() const noexcept { return seen_->exceeded; }

 private:
  struct seen {
    std::atomic<unsigned> held{0};
    std::atomic<bool> exceeded{false};
  };

  const unsigned permits_;
  const shared_memory<seen> seen_;
};

/// Tasks that want one permit each, in several processes.
struct pool {
  unsigned permits;
  int processes, tasks;  // tasks: in each process
  microseconds think;    // between two holds of a task
  bool wants_all;        // one more process has a single task, which wants all permits at once
  microseconds hold = 1'000us;
};

/// The work of one process.
struct shift {
  pool of;
  clock::time_point begin, end;
  unsigned amount;  // of permits, for each of its tasks
  permit_witness& seen;
};

struct shift_result {
  long acquired = 0;
  double longest_wait = 0;  // in seconds
};

asio::awaitable<void> take_turns(expirable_semaphore permits, shift work, shift_result& result) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  co_await pause_until(timer, work.begin);
  while (clock::now() < work.end) {
    const auto asked = clock::now();
    auto held = co_await permits.acquire(work.amount);
    result.longest_wait = std::max(result.longest_wait, seconds_since(asked));
    work.seen.enter(work.amount);
    co_await pause_until(timer, clock::now() + work.of.hold);
    work.seen.leave(work.amount);
    co_await held.unlock();
    ++result.acquired;
    if (work.of.think > 0us) co_await pause_until(timer, clock::now() + work.of.think);
  }
}

void run_tasks(const real_redis& server, const shift& work, int tasks, const teller<shift_result>& tell) {
  asio::io_context io(1);
  auto redis = make_client(io, of_url(server.url()));
  const auto permits = redis.expirable_semaphore(semaphore_name, work.of.permits);
  shift_result result;
  for (int i = 0; i < tasks; ++i) asio::co_spawn(io, take_turns(permits, work, result), rethrow);
  io.run();
  tell(result);
}

struct pool_result {
  double rate = 0;     // acquisitions of single permits, each second
  double scripts = 0;  // for each acquisition
  double share = 0;    // acquisitions of the least process / of the most
  double wait = 0;     // in seconds: the longest for all permits at once, else for one
};

pool_result run(const pool& of, std::chrono::milliseconds how_long) {
  const real_redis server;
  load_scripts(server);
  test::raw_client admin(server);
  permit_witness seen(of.permits);
  const auto begin = clock::now() + get_ready;
  const shift single{of, begin, begin + how_long, 1, seen};
  const auto start = [&](const shift& work, int tasks) {
    return std::make_unique<child_run<shift_result>>(
        [&server, work, tasks](const teller<shift_result>& tell) { run_tasks(server, work, tasks, tell); });
  };
  std::vector<std::unique_ptr<child_run<shift_result>>> processes;
  for (int i = 0; i < of.processes; ++i) processes.push_back(start(single, of.tasks));
  std::unique_ptr<child_run<shift_result>> for_all;
  if (of.wants_all) {
    auto all_at_once = single;
    all_at_once.amount = of.permits;
    for_all = start(all_at_once, 1);
  }
  std::this_thread::sleep_until(begin - get_ready / 10);
  admin("CONFIG", "RESETSTAT");
  std::vector<double> acquired;
  pool_result all;
  for (const auto& each : processes) {
    const auto result = each->result_until(single.end + plan::patience);
    acquired.push_back(static_cast<double>(result.acquired));
    all.wait = std::max(all.wait, result.longest_wait);
  }
  auto sum = 0.0;
  for (const auto each : acquired) sum += each;
  all.rate = sum / std::chrono::duration<double>(how_long).count();
  all.share = std::ranges::min(acquired) / std::ranges::max(acquired);
  if (for_all) {
    const auto result = for_all->result_until(single.end + plan::patience);
    all.wait = result.longest_wait;
    sum += static_cast<double>(result.acquired);
  }
  all.scripts = static_cast<double>(scripts_run(admin)) / sum;
  if (seen.exceeded()) throw std::runtime_error("more permits were held than there are");
  return all;
}

struct kept {
  limit rate, scripts, share;
};

std::vector<finding> contention(const plan& p, const std::string& name, const pool& of) {
  const std::chrono::milliseconds how_long(p.scaled(3'000) + 200);
  std::vector<double> rate, ideal, scripts, share;
  p.rounds(name, [&] {
    const auto r = run(of, how_long);
    rate.push_back(r.rate);
    scripts.push_back(r.scripts);
    share.push_back(r.share);
    ideal.push_back(of.permits * ideal_rate(of.hold, how_long / 3));
  });
  return {{median(rate) / median(ideal),
           {{"holdfast", median(rate)}, {"ideal", median(ideal)}, {"rounds", static_cast<double>(rate.size())}}},
          {median(scripts)},
          {median(share)}};
}

scenario contention_of(const std::string& name, const pool& of, const kept& bounds) {
  return {name,
          {{name + "/rate", "acquisitions/s of a permit / ideal", bounds.rate},
           {name + "/scripts", "scripts / acquisition", bounds.scripts},
           {name + "/share", "acquisitions of the least process / of the most", bounds.share}},
          [=](const plan& p) { return contention(p, name, of); }};
}

std::vector<finding> all_at_once(const plan& p, const std::string& name, const pool& of) {
  const std::chrono::milliseconds how_long(p.scaled(4'000) + 200);
  std::vector<double> wait, rate, ideal;
  p.rounds(name, [&] {
    const auto r = run(of, how_long);
    wait.push_back(r.wait * 1e3);
    rate.push_back(r.rate);
    ideal.push_back(of.permits * ideal_rate(of.hold, how_long / 3));
  });
  return {{median(wait), {{"worst", std::ranges::max(wait)}, {"rounds", static_cast<double>(wait.size())}}},
          {median(rate) / median(ideal), {{"holdfast", median(rate)}, {"ideal", median(ideal)}}}};
}

scenario all_at_once_of(const std::string& name, const pool& of, limit wait) {
  return {name,
          {{name + "/wait", "longest wait for all permits at once, ms", wait},
           {name + "/rate", "acquisitions/s of a permit meanwhile / ideal", {}}},
          [=](const plan& p) { return all_at_once(p, name, of); }};
}

}  // namespace

// 8x2: eight tasks in each of two processes.
std::vector<scenario> permit_scenarios() {
  return {contention_of("permits-8x2", {.permits = 3, .processes = 2, .tasks = 8, .think = 3'000us, .wants_all = false},
                        {at_least(0.75), at_most(0.9), at_least(0.95)}),
          contention_of("permits-2x8", {.permits = 3, .processes = 8, .tasks = 2, .think = 3'000us, .wants_all = false},
                        {at_least(0.7), at_most(3), at_least(0.6)}),
          all_at_once_of("permits-all", {.permits = 4, .processes = 2, .tasks = 8, .think = 0us, .wants_all = true},
                         at_most(50))};
}

}  // namespace holdfast::bench
