// SPDX-License-Identifier: BSL-1.0
// Readers and writers of a shared mutex. The ideal is the same tasks in the same processes without a lock.
#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
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
#include "bench/slow_wires.hpp"
#include "bench/work.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::real_redis;
using std::chrono::microseconds;

constexpr auto shared_name = "bench:shared";

/// Waits of all processes, in ms.
class wait_times {
 public:
  void add(double ms) noexcept {
    if (const auto place = count_++; place < times_.size()) times_[place] = static_cast<float>(ms);
  }
  double p99() const {
    return quantile(0.99, {times_.begin(), times_.begin() + std::min(count_.load(), times_.size())});
  }

 private:
  std::atomic<std::size_t> count_{0};
  std::array<float, 1U << 18U> times_{};
};

/// Readers and writers that hold the lock, of all processes, and how long they waited.
class shared_witness {
 public:
  void enter(bool writes) noexcept {
    const auto before = seen_->inside.fetch_add(weight(writes));
    if (before >= weight(true) || (writes && before > 0)) seen_->overlapped = true;
  }
  void leave(bool writes) noexcept { seen_->inside.fetch_sub(weight(writes)); }
  /// A writer was beside somebody.
  bool overlapped() const noexcept { return seen_->overlapped; }
  wait_times& waits(bool writes) noexcept { return writes ? seen_->writers : seen_->readers; }

 private:
  struct seen {
    std::atomic<int> inside{0};
    std::atomic<bool> overlapped{false};
    wait_times readers, writers;
  };
  /// More than all readers together.
  static constexpr int weight(bool writes) noexcept { return writes ? 1 << 16 : 1; }

  const shared_memory<seen> seen_;
};

/// Tasks of several processes that read, and now and then write.
struct crowd {
  int processes, tasks;  // tasks: in each process
  double writes = 0;     // share of all holds
  std::chrono::nanoseconds one_way{0};
  bool locked = true;
  microseconds hold{1'000}, think{3'000};
};

/// The work of one process.
struct shift {
  crowd of;
  int process;
  clock::time_point begin, end;
  shared_witness& seen;
};

asio::awaitable<void> read_and_write(std::optional<shared_mutex> lock, shift work, int task, long& acquired) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  std::minstd_rand random(static_cast<unsigned>(1 + work.process * work.of.tasks + task));
  std::bernoulli_distribution is_write(work.of.writes);
  co_await pause_until(timer, work.begin);
  while (clock::now() < work.end) {
    const bool writes = is_write(random);
    const auto asked = clock::now();
    lease held;
    if (lock) {
      auto asking = writes ? lock->lock() : lock->lock_shared();
      held = co_await std::move(asking);
      work.seen.waits(writes).add(seconds_since(asked) * 1e3);
      work.seen.enter(writes);
    }
    co_await pause_until(timer, clock::now() + work.of.hold);
    if (lock) {
      work.seen.leave(writes);
      co_await held.unlock();
    }
    ++acquired;
    co_await pause_until(timer, clock::now() + work.of.think);
  }
}

void run_tasks(const std::string& path, const shift& work, const teller<long>& tell) {
  asio::io_context io(1);
  auto redis = make_client(io, of_url("redis+unix://" + path));
  const auto lock = work.of.locked ? std::optional(redis.shared_mutex(shared_name)) : std::nullopt;
  long acquired = 0;
  for (int i = 0; i < work.of.tasks; ++i) asio::co_spawn(io, read_and_write(lock, work, i, acquired), rethrow);
  io.run();
  tell(acquired);
}

struct crowd_result {
  double rate = 0;                          // acquisitions, each second
  double scripts = 0;                       // for each acquisition
  double share = 0;                         // acquisitions of the least process / of the most
  double reader_wait = 0, writer_wait = 0;  // p99, in ms; 0 without a lock, or without writers
};

crowd_result run(const crowd& of, std::chrono::milliseconds how_long) {
  const real_redis server;
  load_scripts(server);
  test::raw_client admin(server);
  const auto seen = std::make_unique<shared_witness>();
  std::optional<slow_wires> wires;
  if (of.one_way > 0ns) wires.emplace(of.one_way);
  const auto path = wires ? wires->to(server.socket_path()) : server.socket_path();
  const auto begin = clock::now() + get_ready;
  std::vector<std::unique_ptr<child_run<long>>> processes;
  for (int i = 0; i < of.processes; ++i) {
    const shift work{of, i, begin, begin + how_long, *seen};
    processes.push_back(
        std::make_unique<child_run<long>>([&path, work](const teller<long>& tell) { run_tasks(path, work, tell); }));
  }
  std::this_thread::sleep_until(begin - get_ready / 10);
  admin("CONFIG", "RESETSTAT");
  std::vector<double> acquired;
  double sum = 0;
  for (const auto& each : processes) {
    acquired.push_back(static_cast<double>(each->result_until(begin + how_long + plan::patience)));
    sum += acquired.back();
  }
  if (seen->overlapped()) throw std::runtime_error("a writer was beside another holder");
  return {sum / std::chrono::duration<double>(how_long).count(), static_cast<double>(scripts_run(admin)) / sum,
          std::ranges::min(acquired) / std::ranges::max(acquired), of.locked ? seen->waits(false).p99() : 0,
          of.writes > 0 ? seen->waits(true).p99() : 0};
}

/// The results of all rounds of one crowd.
struct crowd_rounds : std::vector<crowd_result> {
  double middle(double crowd_result::*field) const {
    std::vector<double> values;
    for (const auto& round : *this) values.push_back(round.*field);
    return median(std::move(values));
  }
};

std::vector<finding> many_readers(const plan& p) {
  const std::chrono::milliseconds how_long(p.scaled(2'000) + 200);
  crowd_rounds ideal, reads, mixed;
  p.rounds("shared-64", [&] {
    ideal.push_back(run(crowd{.processes = 4, .tasks = 16, .locked = false}, how_long));
    reads.push_back(run(crowd{.processes = 4, .tasks = 16}, how_long));
    mixed.push_back(run(crowd{.processes = 4, .tasks = 16, .writes = 0.01}, how_long));
  });
  const auto without = ideal.middle(&crowd_result::rate), alone = reads.middle(&crowd_result::rate),
             beside = mixed.middle(&crowd_result::rate);
  return {{alone / without, {{"holdfast", alone}, {"ideal", without}, {"rounds", static_cast<double>(reads.size())}}},
          {reads.middle(&crowd_result::scripts)},
          {beside / alone, {{"mixed", beside}, {"readers", alone}}},
          {mixed.middle(&crowd_result::writer_wait)}};
}

/// A fifth of all holds are writes.
std::vector<finding> often_written(const plan& p, const std::string& name, std::chrono::nanoseconds one_way) {
  const std::chrono::milliseconds how_long(p.scaled(3'000) + 200);
  crowd_rounds mixed;
  std::vector<double> exclusive;
  p.rounds(name, [&] {
    mixed.push_back(run(crowd{.processes = 4, .tasks = 4, .writes = 0.2, .one_way = one_way}, how_long));
    if (one_way == 0ns) exclusive.push_back(run(crew{.processes = 4, .turns = true}, how_long).rate);
  });
  std::vector<finding> found{
      {mixed.middle(&crowd_result::writer_wait), {{"rounds", static_cast<double>(mixed.size())}}},
      {mixed.middle(&crowd_result::reader_wait)},
      {mixed.middle(&crowd_result::share)}};
  if (exclusive.empty()) return found;
  const auto rate = mixed.middle(&crowd_result::rate), of_mutex = median(exclusive);
  found.push_back({rate / of_mutex, {{"shared", rate}, {"mutex", of_mutex}}});
  return found;
}

scenario often_written_of(const std::string& name, std::chrono::nanoseconds one_way, limit wait, limit share) {
  std::vector<bound> bounds{{name + "/wait", "p99 of a writer's wait, ms, a fifth of all holds writes", wait},
                            {name + "/readers-wait", "p99 of a reader's wait, ms", {}},
                            {name + "/share", "acquisitions of the least process / of the most", share}};
  if (one_way == 0ns) bounds.push_back({name + "/rate", "acquisitions/s / the same tasks with a mutex", {}});
  return {name, bounds, [=](const plan& p) { return often_written(p, name, one_way); }};
}

asio::awaitable<void> read_once(shared_mutex lock) {
  auto held = co_await lock.lock_shared();
  co_await held.unlock();
}

/// Readers of one client that come together.
std::vector<finding> readers_together(const plan& p) {
  constexpr int readers = 64;
  const auto times = p.scaled(1'000);
  const real_redis server;
  asio::io_context io(1);
  auto redis = make_client(io, server);
  test::raw_client admin(server);
  const auto come = [&](int so_many) {
    for (int i = 0; i < so_many; ++i) asio::co_spawn(io, read_once(redis.shared_mutex(shared_name)), rethrow);
    io.run();
    io.restart();
  };
  come(1);  // the server knows the scripts
  admin("CONFIG", "RESETSTAT");
  for (long i = 0; i < times; ++i) come(readers);
  return {{static_cast<double>(scripts_run(admin)) / static_cast<double>(times)}};
}

}  // namespace

// 4x4: four tasks in each of four processes. 10ms: the same, and each message takes so long on its way. A hand-over is
// then 40 ms, and the turns of four clients are 400. A writer behind another of its own process waits for two rounds.
std::vector<scenario> shared_scenarios() {
  return {{"shared-64",
           {{"shared-64-readers", "reads/s of 64 tasks in 4 processes / without a lock", at_least(0.9)},
            {"shared-64-readers/scripts", "scripts / read", {}},
            {"shared-64-writes", "acquisitions/s where 1 % are writes / reads alone", at_least(0.7)},
            {"shared-64-writes/wait", "p99 of a writer's wait, ms", {}}},
           many_readers},
          often_written_of("shared-4x4", 0ns, at_most(30), at_least(0.9)),
          often_written_of("shared-10ms", 10ms, at_most(800), at_least(0.8)),
          {"shared-together",
           {{"shared-together", "scripts for 64 readers of one client that come at once", at_most(2)}},
           readers_together}};
}

}  // namespace holdfast::bench
