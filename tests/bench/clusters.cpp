// SPDX-License-Identifier: BSL-1.0
// A cluster beside one server: a pair of lock and unlock, and the renewal of ten thousand holds.
#include <boost/asio/executor_work_guard.hpp>

#include <algorithm>
#include <deque>

#include "bench/baselines.hpp"
#include "bench/holder.hpp"
#include "bench/laps.hpp"
#include "support/real_cluster.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::real_cluster;
using test::real_redis;

constexpr long all_holds = 10'000;
constexpr int abreast = 64;  // calls of lock() at a time

/// Three primaries. Their replicas are dead: six servers and a client on a few processors would measure those, and the
/// one server beside them has no replica to feed, either.
struct three_primaries : real_cluster {
  three_primaries() {
    configure("cluster-node-timeout", "15000");  // a busy machine is no failure
    for (auto n = shards; n < nodes; ++n) node(n).kill();
  }
};

// --- a pair

/// The same commands, except for the word that publishes.
sequence pair_of_a_cluster() {
  const detail::lock_keys keys(detail::plain_lock, name_of(0), {.prefix = {}, .word = detail::publish_word::automatic});
  const auto field = field_of(0);
  sequence pair(2);
  detail::plain_lock.acquire.make(keys, default_ttl, field).append_to(pair[0], false);
  detail::plain_lock.release.make(keys, field).append_to(pair[1], false);
  return pair;
}

std::vector<finding> pair_in_a_cluster(const plan& p) {
  constexpr int turns = 100;           // each way has so many in a round, so that all see the same machine
  const real_redis one(with_tcp({}));  // as the cluster is reached
  three_primaries three;
  asio::io_context io(1);
  auto beside = make_client(io, of_url(one.tcp_url())), redis = make_client(io, of_url(three.url()));
  bare_trips bare_beside(one.port(), our_pair(0));
  bare_trips bare(three.node(three.owner_of(name_of(0))).port(), pair_of_a_cluster());
  const auto pairs = p.scaled(100);
  const auto live = [&](client& c, laps& all) {
    asio::co_spawn(io, lock_and_unlock(c.mutex(name_of(0)), pairs, all), rethrow);
    io.run();
    io.restart();
  };
  ways w;
  p.rounds("cluster-c1", [&] {
    laps one_us, cluster_us, bare_one_us, bare_cluster_us;
    for (int turn = 0; turn < turns; ++turn) {
      live(beside, one_us);
      live(redis, cluster_us);
      bare_beside.live(pairs, bare_one_us);
      bare.live(pairs, bare_cluster_us);
    }
    w["one"].push_back(median(one_us));
    w["cluster"].push_back(median(cluster_us));
    w["bare_one"].push_back(median(bare_one_us));
    w["bare_cluster"].push_back(median(bare_cluster_us));
  });
  const auto ours = w.compare("cluster", "one");
  auto beyond = w.compare("bare_cluster", "bare_one");  // what the servers take
  beyond.value = ours.value / beyond.value;
  return {ours, beyond};
}

// --- renewals

/// What one renewal costs, in us of CPU.
struct renewal_cost {
  double server = 0;  // of all primaries; without what they use when nothing is asked of them
  double idle = 0;    // what that is, spread over as many renewals
  double client = 0;
};

/// Several servers as one: their CPU time and the renewals that they have executed.
class primaries {
 public:
  explicit primaries(const std::vector<const real_redis*>& all) {
    for (const auto* each : all) admins_.emplace_back(*each);
  }
  double cpu() {
    double sum = 0;
    for (auto& each : admins_) sum += cpu_of(each);
    return sum;
  }
  void forget_calls() {
    for (auto& each : admins_) each("CONFIG", "RESETSTAT");
  }
  double renewals() {
    double sum = 0;
    for (auto& each : admins_)
      sum += static_cast<double>(calls_of(each("INFO", "commandstats").to_string(), "pexpire"));
    return sum;
  }

 private:
  std::deque<test::raw_client> admins_;
};

renewal_cost renew(const std::string& url, const std::vector<const real_redis*>& servers, long n, milliseconds ttl) {
  const auto measured = ttl / 3;  // a renewal of each
  asio::io_context io(1);
  primaries all(servers);
  auto settings = of_url(url);
  settings.ttl = ttl;
  auto redis = make_client(io, settings);
  auto open = asio::make_work_guard(io);
  const auto spend = [&](auto how_long) {
    const auto used = all.cpu();
    io.run_for(how_long);
    return all.cpu() - used;
  };
  const auto idle = spend(measured / 2) * 2;
  holder h(redis, n);
  take_all(io, h, abreast, clock::now() + plan::patience);
  spend(ttl / 3);
  all.forget_calls();
  const auto client = own_cpu();
  const auto server = spend(measured);
  const auto client_used = own_cpu() - client, renewals = all.renewals();
  must_hold(h);
  open.reset();
  end(io, redis);
  const auto us = 1e6 / renewals;
  return {(server - idle) * us, idle * us, client_used * us};
}

std::vector<finding> holds_in_a_cluster(const plan& p) {
  const real_redis one(with_tcp({}));  // as the cluster is reached
  three_primaries three;
  std::vector<const real_redis*> shards;
  for (const auto n : three.primaries()) shards.push_back(&three.node(n));
  const auto n = p.scaled(all_holds);
  const milliseconds ttl(std::max(p.scaled(6'000), 300L));
  ways server, client, idle;
  const auto note = [&](const char* way, const renewal_cost& c) {
    server[way].push_back(c.server);
    client[way].push_back(c.client);
    idle[way].push_back(c.idle);
  };
  p.rounds("cluster-holds", [&] {
    note("one", renew(one.tcp_url(), {&one}, n, ttl));
    note("cluster", renew(three.url(), shards, n, ttl));
  });
  auto of_servers = server.compare("cluster", "one");
  of_servers.made_of.insert(of_servers.made_of.end(),
                            {{"cluster_idle", median(idle["cluster"])}, {"one_idle", median(idle["one"])}});
  return {of_servers, client.compare("cluster", "one")};
}

}  // namespace

std::vector<scenario> cluster_scenarios() {
  return {{"cluster-c1",
           {{"cluster-c1", "p50 of a pair in a cluster, us / on one server", at_most(1.05)},
            {"cluster-c1/bare", "the same / that ratio of the bare client", at_most(1.05)}},
           pair_in_a_cluster},
          {"cluster-holds",
           {{"cluster-holds/server", "server CPU of a renewal in a cluster, us / on one server", at_most(1.8)},
            {"cluster-holds/client", "client CPU of a renewal in a cluster, us / on one server", at_most(3)}},
           holds_in_a_cluster}};
}

}  // namespace holdfast::bench
