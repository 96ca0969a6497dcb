// SPDX-License-Identifier: BSL-1.0
// Honest contention: processes whose tasks want one name, hold it for a moment and think before they want it again. The
// ideal is one task that holds as often as it can without a lock. Where clients race for each hold, and where they take
// turns.
#include <sys/mman.h>
#include <unistd.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "bench/bare_client.hpp"
#include "bench/child_run.hpp"
#include "bench/meter.hpp"
#include "bench/redisson_jvm.hpp"
#include "bench/redisson_process.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"
#include "support/fd.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::real_redis;

constexpr auto hold = 1ms, think = 3ms;
constexpr auto get_ready = 500ms;  // to connect, before all start at once
constexpr int most_tasks = 128;
constexpr auto contended_name = "bench:contended";

struct shift {
  clock::time_point begin, end;
};

struct crew {
  int processes;
  bool turns;          // config::turns
  int redissons = 0;   // of the processes: so many have Redisson's protocol, and all their tasks
  bool tight = false;  // they hold for no time, and do not think
  int all_tasks = 16;
  bool jvm = false;  // the first of the redissons is Redisson itself
  int tasks() const { return all_tasks / processes; }
};

struct tasks_result {
  std::array<long, most_tasks> acquired{};  // by each task of the process
  double longest_wait = 0;                  // in seconds
};

/// What all processes see of the lock: whether two ever hold at once, how long it takes from one process to the next,
/// for how long one keeps it, and how often one is overtaken.
class witness {
 public:
  explicit witness(int processes)
      : processes_(static_cast<std::size_t>(processes)), memory_(::memfd_create("witness", MFD_CLOEXEC)) {
    if (!memory_ || ::ftruncate(memory_.get(), sizeof(seen)) != 0) fail("a memfd");
    seen_ = ::mmap(nullptr, sizeof(seen), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    if (seen_ == MAP_FAILED) fail("mmap");
    new (seen_) seen;
  }
  witness(const witness&) = delete;
  witness& operator=(const witness&) = delete;
  ~witness() { ::munmap(seen_, sizeof(seen)); }

  /// For another program: it begins with how many are inside, and how often one came who was not alone.
  std::string path() const {
    static_assert(offsetof(seen, inside) == 0 && offsetof(seen, overlaps) == sizeof(std::int64_t));
    static_assert(std::atomic<std::int64_t>::is_always_lock_free);
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(memory_.get());
  }

  void enter(int process) {
    auto& s = all();
    if (s.inside++ > 0) ++s.overlaps;
    const auto now = clock::now();
    if (process == s.process) return;
    if (s.process != nobody && s.hand_overs < s.took.size()) s.took[s.hand_overs++] = now - s.left;
    s.process = process;
    s.since = now;
    const auto mine = static_cast<std::size_t>(process);
    for (std::size_t other = 0; other < processes_; ++other)
      s.most_turns = std::max(s.most_turns, ++s.since_turn_of[other][mine]);
    s.since_turn_of[mine] = {};
  }
  void leave() {
    auto& s = all();
    s.left = clock::now();
    s.longest_burst = std::max(s.longest_burst, s.left - s.since);
    --s.inside;
  }
  bool overlaps() { return all().overlaps > 0; }
  /// That one process has had between two of another.
  int most_turns() { return all().most_turns; }
  double longest_burst() { return std::chrono::duration<double>(all().longest_burst).count(); }
  /// In microseconds.
  double hand_over_p50() {
    std::vector<double> took;
    for (std::size_t n = 0; n < all().hand_overs; ++n)
      took.push_back(std::chrono::duration<double, std::micro>(all().took[n]).count());
    return took.empty() ? 0 : median(std::move(took));
  }

 private:
  static constexpr int nobody = -1;
  static constexpr std::size_t most_processes = 8;
  static constexpr std::size_t most_hand_overs = 1U << 16U;
  struct seen {
    std::atomic<std::int64_t> inside{0}, overlaps{0};
    // The holder changes these; a JVM does not.
    int process = nobody;  // that had it last
    clock::time_point since{}, left{};
    clock::duration longest_burst{};
    std::array<std::array<int, most_processes>, most_processes> since_turn_of{};  // of each: turns of each other
    int most_turns = 0;
    std::size_t hand_overs = 0;
    std::array<clock::duration, most_hand_overs> took{};
  };
  seen& all() { return *static_cast<seen*>(seen_); }
  [[noreturn]] static void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

  const std::size_t processes_;
  const test::unique_fd memory_;
  void* seen_ = nullptr;
};

asio::awaitable<void> pause(asio::steady_timer& timer, clock::duration how_long) {
  timer.expires_after(how_long);
  co_await timer.async_wait(asio::use_awaitable);
}

/// One that contends with a client of ours.
class own_task {
 public:
  explicit own_task(client& redis) : mutex_(redis.mutex(contended_name)) {}
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
  bool tight;
  int process;
  witness& seen;
};

template <class Task>
asio::awaitable<void> contend(Task with, contender who, long& acquired, double& longest_wait) {
  const auto [when, tight, process, seen] = who;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  co_await pause(timer, when.begin - clock::now());
  while (clock::now() < when.end) {
    const auto asked = clock::now();
    co_await with.lock();
    longest_wait = std::max(longest_wait, seconds_since(asked));
    seen.enter(process);
    if (!tight) co_await pause(timer, hold);
    seen.leave();
    co_await with.unlock();
    ++acquired;
    if (!tight) co_await pause(timer, think);
  }
}

void contending_process(const real_redis& server, crew who, const contender& each, const teller<tasks_result>& tell) {
  asio::io_context io(1);
  auto settings = of_url(server.url());
  settings.turns = who.turns;
  auto redis = make_client(io, std::move(settings));
  tasks_result r;
  for (int t = 0; t < who.tasks(); ++t)
    asio::co_spawn(io, contend(own_task(redis), each, r.acquired[static_cast<std::size_t>(t)], r.longest_wait),
                   rethrow);
  io.run();
  tell(r);
}

void contending_redisson(const real_redis& server, crew who, const contender& each, const teller<tasks_result>& tell) {
  asio::io_context io(1);
  redisson_process redis(io, server.socket_path(), contended_name);
  tasks_result r;
  int open = who.tasks();
  for (int t = 0; t < who.tasks(); ++t)
    asio::co_spawn(io, contend(redisson_task(redis, t), each, r.acquired[static_cast<std::size_t>(t)], r.longest_wait),
                   [&](std::exception_ptr failed) {
                     rethrow(failed);
                     if (--open == 0) redis.stop();
                   });
  io.run();
  tell(r);
}

struct trips_result {
  long pairs = 0;
  double median_us = 0;
};

/// Makes two round trips now and then.
void idle_process(const real_redis& server, shift when, const teller<trips_result>& tell) {
  constexpr auto now_and_then = 10ms;
  asio::io_context io(1);
  bare_client bare(io, server.socket_path(), false);
  asio::steady_timer next(io);
  const std::array<std::string, 2> pair{acquire_command(0), release_command(0)};
  std::vector<double> took;
  std::size_t answered = 0;
  auto begun = clock::now();
  const std::function<void()> wait = [&] {
    if (clock::now() >= when.end) return bare.stop();
    next.expires_after(now_and_then);
    next.async_wait([&](auto) {
      begun = clock::now();
      answered = 0;
      bare.send(pair[0]);
    });
  };
  bare.start([&] {
    if (++answered < pair.size()) return bare.send(pair[answered]);
    took.push_back(lap_us(begun));
    wait();
  });
  next.expires_at(when.begin);
  next.async_wait([&](auto) { wait(); });
  io.run();
  tell({std::ssize(took), median(took)});
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
  double rate = 0, commands = 0, least_share = 0;
  double own_share = 0, longest_wait = 0;  // our processes' share of what is fair; of anybody, in seconds
  double longest_burst = 0;                // seconds for which one process kept it
  double most_turns = 0;                   // of one process between two of another
  double hand_over = 0, two_trips = 0;     // medians in microseconds: to another process; of a process that is idle
};

/// Redisson knows no unix socket.
test::redis_options server_for(crew who) { return who.jvm ? with_tcp({}) : test::redis_options(); }

contended run(crew who, std::chrono::milliseconds how_long) {
  const real_redis server(server_for(who));
  load_scripts(server);
  test::raw_client admin(server);
  witness seen(who.processes);
  std::optional<redisson_jvm> jvm;
  if (who.jvm) jvm.emplace(redisson_jvm::work{server.url(), contended_name, seen.path(), who.tasks(), hold, think});
  const auto begin = clock::now() + get_ready;
  const shift when{begin, begin + how_long};
  if (jvm) jvm->work_for(how_long, get_ready);
  std::vector<std::unique_ptr<child_run<tasks_result>>> all;
  for (int i = who.jvm ? 1 : 0; i < who.processes; ++i)
    all.push_back(std::make_unique<child_run<tasks_result>>([&, i](const teller<tasks_result>& tell) {
      const contender each{when, who.tight, i, seen};
      i < who.redissons ? contending_redisson(server, who, each, tell) : contending_process(server, who, each, tell);
    }));
  std::optional<child_run<trips_result>> idle;
  if (!who.tight) idle.emplace([&](const teller<trips_result>& tell) { idle_process(server, when, tell); });
  std::this_thread::sleep_until(begin - get_ready / 10);
  admin("CONFIG", "RESETSTAT");
  std::vector<long> acquired;
  double longest_wait = 0;
  const auto count = [&](const auto& r) {
    const auto tasks = std::span(r.acquired).first(static_cast<std::size_t>(who.tasks()));
    acquired.insert(acquired.end(), tasks.begin(), tasks.end());
    longest_wait = std::max(longest_wait, r.longest_wait);
  };
  if (jvm) count(jvm->result_until(when.end + plan::patience));
  for (const auto& child : all) count(child->result_until(when.end + plan::patience));
  const auto trips = idle ? idle->result_until(when.end + plan::patience) : trips_result();
  if (seen.overlaps()) throw std::runtime_error("two held the lock at once");
  const auto sum = static_cast<double>(std::reduce(acquired.begin(), acquired.end()));
  const auto ours = static_cast<double>(std::reduce(acquired.begin() + who.redissons * who.tasks(), acquired.end()));
  return {sum / std::chrono::duration<double>(how_long).count(),
          static_cast<double>(commands_run(admin) - 2 * trips.pairs) / sum,
          static_cast<double>(*std::ranges::min_element(acquired)) * who.all_tasks / sum,
          ours * who.processes / (sum * (who.processes - who.redissons)),
          longest_wait,
          seen.longest_burst(),
          static_cast<double>(seen.most_turns()),
          seen.hand_over_p50(),
          trips.median_us};
}

/// Acquisitions per second, commands for each, the least waiter's share; how long the lock takes from one process to
/// another, for how long one of several keeps it, and how often one is overtaken.
struct kept {
  std::optional<limit> rate{}, commands{}, share{}, hand_over{}, burst{}, overtaken{};
};

std::vector<finding> contention(const plan& p, const std::string& name, crew who) {
  const std::chrono::milliseconds how_long(p.scaled(3'000) + 200);
  std::vector<double> rate, ideal, commands, share, hand_over, two_trips, burst, turns;
  p.rounds(name, [&] {
    const auto r = run(who, how_long);
    rate.push_back(r.rate);
    commands.push_back(r.commands);
    share.push_back(r.least_share);
    hand_over.push_back(r.hand_over);
    two_trips.push_back(r.two_trips);
    burst.push_back(r.longest_burst * 1e3);
    turns.push_back(r.most_turns);
    ideal.push_back(ideal_rate(how_long / 3));
  });
  std::vector<finding> all{
      {median(rate) / median(ideal), {{"holdfast", median(rate)}, {"ideal", median(ideal)}, {"rounds", rate.size()}}},
      {median(commands)},
      {median(share)}};
  if (who.processes == 1) return all;
  all.push_back({median(hand_over) / median(two_trips),
                 {{"hand_over_us", median(hand_over)}, {"two_trips_us", median(two_trips)}}});
  all.push_back({median(burst)});
  all.push_back({median(turns)});
  return all;
}

scenario contention_of(const std::string& name, crew who, kept bounds = {}) {
  scenario s{name,
             {{name + "/rate", "acquisitions/s / ideal", bounds.rate},
              {name + "/commands", "commands / acquisition", bounds.commands},
              {name + "/share", "least waiter's share / fair", bounds.share}},
             [=](const plan& p) { return contention(p, name, who); }};
  if (who.processes == 1) return s;
  s.bounds.push_back({name + "/hand-over", "to another process / two round trips of an idle one", bounds.hand_over});
  s.bounds.push_back({name + "/burst", "ms for which a process keeps it at most", bounds.burst});
  s.bounds.push_back({name + "/overtaken", "turns of a process between two of another at most", bounds.overtaken});
  return s;
}

/// Both sides have eight tasks. What is fair to one side is so to the other: within 0.75 and 1.25 both have at least
/// three quarters of their share.
std::vector<finding> beside(const plan& p, const std::string& name, crew who) {
  const std::chrono::milliseconds how_long(p.scaled(3'000) + 200);
  std::vector<double> rate, ideal, commands, own, others, wait;
  p.rounds(name, [&] {
    const auto r = run(who, how_long);
    rate.push_back(r.rate);
    commands.push_back(r.commands);
    own.push_back(r.own_share);
    others.push_back((who.processes - (who.processes - who.redissons) * r.own_share) / who.redissons);
    wait.push_back(r.longest_wait * 1e3);
    ideal.push_back(ideal_rate(how_long / 3));
  });
  return {{median(rate) / median(ideal)}, {median(commands)}, {median(own)}, {median(others)}, {median(wait)}};
}

scenario beside_redisson(const std::string& name, crew who, bool bound) {
  const auto if_bound = [bound](limit l) { return bound ? std::optional(l) : std::nullopt; };
  return {name,
          {{name + "/rate", "acquisitions/s / ideal", if_bound(at_least(0.70))},
           {name + "/commands", "commands / acquisition", if_bound(at_most(7))},
           {name + "/own-share", "share of our tasks / fair", if_bound(at_least(0.75))},
           {name + "/redissons-share", "share of Redisson's tasks / fair", if_bound(at_least(0.75))},
           {name + "/wait", "longest wait in ms", if_bound(at_most(500))}},
          [=](const plan& p) { return beside(p, name, who); }};
}

/// Whose holds take no time, beside one process of Redisson's protocol that has the lock for itself.
std::vector<finding> tight(const plan& p, const std::string& name, crew who) {
  const std::chrono::milliseconds how_long(p.scaled(2'000) + 200);
  std::vector<double> rate, baseline, share;
  p.rounds(name, [&] {
    const auto r = run(who, how_long);
    rate.push_back(r.rate);
    share.push_back(r.least_share);
    baseline.push_back(run({.processes = 1, .turns = false, .redissons = 1, .tight = true}, how_long).rate);
  });
  return {{median(rate) / median(baseline),
           {{"holdfast", median(rate)}, {"redisson", median(baseline)}, {"rounds", rate.size()}}},
          {median(share)}};
}

scenario tight_of(const std::string& name, int processes, limit rate, limit share) {
  const crew who{.processes = processes, .turns = true, .tight = true};
  return {name,
          {{name + "/rate", "acquisitions/s / Redisson's protocol in one process", rate},
           {name + "/share", "least waiter's share / fair", share}},
          [=](const plan& p) { return tight(p, name, who); }};
}

}  // namespace

std::vector<scenario> contention_scenarios() {
  return {
      contention_of("contention-2", {2, false}),
      contention_of("contention-8", {8, false}),
      contention_of("local-16", {1, true}, {at_least(0.98), at_most(0.25), at_least(0.95)}),
      contention_of("local-128", {.processes = 1, .turns = true, .all_tasks = 128},
                    {at_least(0.98), at_most(0.25), at_least(0.95)}),
      tight_of("local-tight", 1, at_least(50), at_least(0.9)),
      tight_of("procs-tight", 2, at_least(10), at_least(0.9)),
      contention_of("procs-2", {2, true}, {at_least(0.88), at_most(0.5), at_least(0.95), {}, at_most(21), at_most(2)}),
      contention_of("procs-8", {8, true},
                    {at_least(0.80), at_most(2), at_least(0.95), at_most(1.3), at_most(21), at_most(2)}),
      beside_redisson("beside-redisson", {2, true, 1}, true),
      beside_redisson("beside-redisson-4", {4, true, 2}, false),
      beside_redisson("beside-redisson-race", {2, false, 1}, false)};
}

scenario redisson_scenario() {
  auto s = beside_redisson("beside-redisson-jar", {.processes = 2, .turns = true, .redissons = 1, .jvm = true}, true);
  s.missing = redisson_jvm::missing;
  return s;
}

}  // namespace holdfast::bench
