// SPDX-License-Identifier: BSL-1.0
// Replicas: ten thousand holds whose primary is replaced, and grants that wait for a replica.
#include <algorithm>
#include <deque>
#include <memory>

#include "bench/baselines.hpp"
#include "bench/holder.hpp"
#include "bench/laps.hpp"
#include "bench/slow_wires.hpp"
#include "support/proxy.hpp"
#include "support/real_sentinel.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::proxy;
using test::real_redis;
using test::real_sentinel;

constexpr int abreast = 64;

/// Sees the announcement of another primary, and how the holds are confirmed there.
struct switch_observer final : observer {
  void on(const event& e) noexcept override {
    const auto now = clock::now();
    if (e.kind == event_kind::primary_changed) announced = now;
    if (e.kind == event_kind::restored) ++restored, confirmed = now;
  }
  clock::time_point announced{}, confirmed{};
  long restored = 0;
};

std::vector<finding> another_primary(const plan& p) {
  real_sentinel rig;
  const auto n = p.scaled(10'000);
  std::vector<double> took, bare, handler;
  bool again = false;
  p.rounds("sentinel-switch", [&] {
    if (std::exchange(again, true)) rig.reset();
    const auto seen = std::make_shared<switch_observer>();
    asio::io_context io(1);
    auto settings = of_url(rig.url());
    settings.observer = seen;
    auto redis = make_client(io, settings);
    holder h(redis, n);
    take_all(io, h, abreast, clock::now() + plan::patience);
    rig.replicate();
    rig.begin_fail_over();
    handler.push_back(1e3 * run_handlers(
                                io, [&] { return seen->restored >= n; }, clock::now() + 20s));
    must_hold(h);
    if (seen->restored < n) throw not_finished(std::to_string(seen->restored) + " confirmed");
    took.push_back(std::chrono::duration<double, std::milli>(seen->confirmed - seen->announced).count());
    rig.wait_for_failover();
    load_scripts(rig.primary());  // a replica has only what they did
    bare.push_back(bare_confirmation(rig.primary().socket_path(), n) * 1e3);
    end(io, redis);
  });
  return {{median(took),
           {{"worst", *std::ranges::max_element(took)},
            {"bare", median(bare)},
            {"longest_handler", median(handler)},
            {"n", n},
            {"rounds", took.size()}}}};
}

test::redis_options replica_of(std::uint16_t port) {
  test::redis_options o;
  o.arguments = {"--replicaof", "127.0.0.1", std::to_string(port)};
  return o;
}
void await_replica(real_redis& primary) {
  test::raw_client admin(primary);
  const auto replicates = [&] {
    admin("PUBLISH", "mark", "");
    return admin("WAIT", 1, 100) == 1;
  };
  while (!replicates()) {
  }
}

/// A primary and its replica, with so much between the two, and between them and the client.
struct distant_replica {
  distant_replica(milliseconds to_replica, milliseconds to_client) : wires(to_client) {
    network.delay(proxy::direction::to_server, to_replica);
    network.delay(proxy::direction::to_client, to_replica);
    await_replica(primary);
  }
  real_redis primary{with_tcp({"--repl-diskless-sync-delay", "0"})};
  proxy network{primary, {.tcp = true}};
  real_redis replica{replica_of(network.port())};
  slow_wires wires;
  std::string url = "redis+unix://" + wires.to(primary.socket_path());
};

/// Pairs a second of so many callers, each with a name of its own.
double rate_of_pairs(const std::string& url, unsigned replicas, long pairs) {
  asio::io_context io(1);
  auto settings = of_url(url);
  settings.min_replicas = replicas;
  auto redis = make_client(io, settings);
  laps all;
  const auto begun = clock::now();
  for (int i = 0; i < abreast; ++i)
    asio::co_spawn(io, lock_and_unlock(redis.mutex(name_of(i)), pairs / abreast, all), rethrow);
  io.run();
  return static_cast<double>(all.size()) / seconds_since(begun);
}

std::vector<finding> grants_on_a_replica(const plan& p) {
  const distant_replica near(0ms, 1ms), far(1ms, 1ms);
  const auto pairs = p.scaled(10'000);
  ways of_near, of_far;
  p.rounds("min-replicas-c64", [&] {
    for (const auto& [servers, way] : {std::pair(&near, &of_near), {&far, &of_far}}) {
      (*way)["none"].push_back(rate_of_pairs(servers->url, 0, pairs));
      (*way)["one"].push_back(rate_of_pairs(servers->url, 1, pairs));
    }
  });
  return {of_near.compare("one", "none"), of_far.compare("one", "none")};
}

}  // namespace

std::vector<scenario> replica_scenarios() {
  return {
      {"sentinel-switch",
       {{"sentinel-switch", "10 000 holds confirmed after the announcement, ms", at_most(200)}},
       another_primary},
      {"min-replicas-c64",
       {{"min-replicas-c64", "pairs a second with min_replicas 1 / 0, primary and replica 1 ms away", at_least(0.5)},
        {"min-replicas-c64/far", "the same with 1 ms between the two as well"}},
       grants_on_a_replica}};
}

}  // namespace holdfast::bench
