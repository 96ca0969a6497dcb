// SPDX-License-Identifier: BSL-1.0
// N lock() at once on N free names, and the shutdown of a client that holds N locks: what queueing costs, beside the
// bare client's time for the same commands. Each run has a server and a process of its own.
#include <boost/asio/detached.hpp>

#include <algorithm>

#include "bench/baselines.hpp"
#include "bench/child_run.hpp"
#include "bench/holder.hpp"
#include "bench/meter.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::real_redis;

constexpr std::size_t longest_error = 160;

struct burst_result {
  cost used;
  double longest_handler = 0;  // seconds of CPU
  long held = 0;
  char error[longest_error] = "";  // of the first lock() that failed
};
struct shutdown_result {
  cost used;
  double longest_handler = 0;
  long held_before = 0, keys_left = 0;
  bool returned = false;
};
void lock_all(const real_redis& server, long n, const teller<burst_result>& tell) {
  asio::io_context io(1);
  auto redis = make_client(io, server);
  warm_up(io, redis);
  test::raw_client admin(server);
  holder h(redis, n);
  burst_result r;
  meter m(admin);
  for (long i = 0; i < n; ++i) asio::co_spawn(io, take(h, i), asio::detached);
  r.longest_handler = run_handlers(
      io, [&] { return h.ended == n; }, clock::now() + plan::patience);
  r.used = m.stop();
  r.held = h.held();
  h.error.copy(r.error, longest_error - 1);
  tell(r);
}

asio::awaitable<void> shut_down(client& redis, bool& returned) {
  co_await redis.shutdown(20s);
  returned = true;
}

void shut_down_with(const real_redis& server, long n, const teller<shutdown_result>& tell) {
  asio::io_context io(1);
  auto redis = make_client(io, server);
  warm_up(io, redis);
  test::raw_client admin(server);
  holder h(redis, n);
  const auto deadline = clock::now() + plan::patience;
  take_all(io, h, 256, deadline);
  shutdown_result r;
  r.held_before = h.held();
  meter m(admin);
  asio::co_spawn(io, shut_down(redis, r.returned), rethrow);
  r.longest_handler = run_handlers(
      io, [&] { return r.returned; }, deadline);
  r.used = m.stop();
  r.keys_left = admin("DBSIZE").integer();
  tell(r);
}

/// The same commands by the bare client.
void all_bare(const real_redis& server, long n, const teller<burst_times>& tell) {
  tell(bare_burst(server.socket_path(), n));
}

/// What `work` tells, with a fresh server in a fresh process.
template <class Result>
Result alone(void (*work)(const real_redis&, long, const teller<Result>&), long n) {
  const real_redis server;
  load_scripts(server);
  child_run<Result> run([&](const teller<Result>& tell) { work(server, n, tell); });
  return run.result_until(clock::now() + plan::patience + 20s);
}

std::string of_all(long some, long n, const char* what) {
  return std::to_string(some) + " of " + std::to_string(n) + " " + what;
}

burst_result whole_burst(long n) {
  const auto r = alone(lock_all, n);
  if (r.held == n) return r;
  throw not_finished(of_all(r.held, n, "held at the end") + (*r.error ? std::string("; first error: ") + r.error : ""),
                     {{"held", r.held},
                      {"seconds", r.used.seconds},
                      {"commands", r.used.scripts},
                      {"longest_handler_ms", r.longest_handler * 1e3}});
}

shutdown_result whole_shutdown(long n) {
  const auto r = alone(shut_down_with, n);
  if (r.held_before < n) throw not_finished(of_all(r.held_before, n, "held before it"));
  if (!r.returned)
    throw not_finished(of_all(r.keys_left, n, "keys left"), {{"commands", static_cast<double>(r.used.scripts)}});
  return r;
}

std::vector<finding> burst(const plan& p, const std::string& name, long full, long compared_with) {
  const long n = p.scaled(full), few = p.scaled(compared_with);
  std::vector<double> small, time, bare, commands, handler;
  p.rounds(name, [&] {
    if (few > 0) small.push_back(whole_burst(few).used.seconds);
    const auto ours = whole_burst(n);
    time.push_back(ours.used.seconds);
    commands.push_back(static_cast<double>(ours.used.scripts));
    handler.push_back(ours.longest_handler * 1e3);
    bare.push_back(alone(all_bare, n).acquires);
  });
  const figures size{{"n", n}, {"rounds", time.size()}};
  std::vector<finding> found{{median(commands) / static_cast<double>(n), size},
                             {median(time) / median(bare), {{"seconds", median(time)}, {"bare_s", median(bare)}}},
                             {median(handler), {{"worst", *std::ranges::max_element(handler)}}}};
  if (few > 0) {
    const auto each = median(time) / static_cast<double>(n), each_of_few = median(small) / static_cast<double>(few);
    found.push_back({each / each_of_few, {{"us", each * 1e6}, {"small_us", each_of_few * 1e6}, {"small_n", few}}});
  }
  return found;
}

std::vector<finding> shutdown(const plan& p, const std::string& name, long full) {
  const long n = p.scaled(full);
  std::vector<double> keys, time, bare, commands, handler;
  p.rounds(name, [&] {
    const auto ours = whole_shutdown(n);
    keys.push_back(static_cast<double>(ours.keys_left));
    time.push_back(ours.used.seconds);
    commands.push_back(static_cast<double>(ours.used.scripts));
    handler.push_back(ours.longest_handler * 1e3);
    bare.push_back(alone(all_bare, n).releases);
  });
  return {{*std::ranges::max_element(keys), {{"n", n}, {"rounds", keys.size()}}},
          {median(time) / median(bare),
           {{"seconds", median(time)},
            {"bare_s", median(bare)},
            {"commands", median(commands)},
            {"longest_handler_ms", median(handler)}}}};
}

scenario burst_of(const std::string& name, long n, long compared_with = 0) {
  std::vector<bound> bounds{{name + "/commands", "commands sent / N", at_most(1.05)},
                            {name + "/time", "time / bare client, same commands", at_most(2)},
                            {name + "/handler", "longest single handler, ms of CPU", at_most(20)}};
  if (compared_with > 0) bounds.push_back({name + "/scale", "time of one / that in a small burst", at_most(1.5)});
  return {name, bounds, [=](const plan& p) { return burst(p, name, n, compared_with); }};
}

scenario shutdown_of(const std::string& name, long n) {
  return {name,
          {{name + "/keys", "keys left, at worst", at_most(0)},
           {name + "/time", "time / bare client, same releases", at_most(2)}},
          [=](const plan& p) { return shutdown(p, name, n); }};
}

}  // namespace

std::vector<scenario> burst_scenarios() {
  return {burst_of("burst-5k", 5'000), burst_of("burst-20k", 20'000), burst_of("burst-60k", 60'000),
          burst_of("burst-200k", 200'000, 5'000), shutdown_of("shutdown-60k", 60'000)};
}

}  // namespace holdfast::bench
