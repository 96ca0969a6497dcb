// SPDX-License-Identifier: BSL-1.0
// A pair, lock and unlock, behind a network of 250 us each way: what the majority of five servers costs beside one
// server, and many names at once beside one name.
#include <deque>

#include "bench/baselines.hpp"
#include "bench/laps.hpp"
#include "bench/meter.hpp"
#include "bench/scenario.hpp"
#include "bench/slow_wires.hpp"
#include "bench/work.hpp"
#include "protocol/vote/vote.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t primaries = 5, majority = 3;
constexpr int many_names = 8;
constexpr auto one_way = 250us;
constexpr milliseconds longest_ttl{60'000};

class distant_servers {
 public:
  explicit distant_servers(std::size_t n) : servers_(n) {
    for (const auto& one : servers_) paths_.push_back(wires_.to(one.socket_path()));
  }

  std::size_t size() const { return servers_.size(); }
  test::real_redis& server(std::size_t n) { return servers_[n]; }
  const std::vector<std::string>& paths() const { return paths_; }
  std::string run(std::size_t n) {
    const auto info = test::raw_client(servers_[n])("INFO", "server").to_string();
    return info.substr(info.find("\nrun_id:") + 8, 40);
  }
  config settings() const {
    config c;
    if (size() == 1) {
      c.url = "redis+unix://" + paths_[0];
      return c;
    }
    c.red_lock.longest_ttl = longest_ttl;
    for (const auto& p : paths_) c.red_lock.primaries.push_back("redis+unix://" + p);
    return c;
  }

 private:
  std::deque<test::real_redis> servers_;
  slow_wires wires_{one_way};
  std::vector<std::string> paths_;
};

/// `make_lock(client)`
template <class MakeLock>
laps run_holdfast(const distant_servers& servers, long pairs, MakeLock make_lock) {
  asio::io_context io(1);
  client redis(io.get_executor(), servers.settings());
  const auto live = [&](long so_many) {
    laps all;
    all.reserve(static_cast<std::size_t>(so_many));
    asio::co_spawn(io, lock_and_unlock(make_lock(redis), so_many, all), rethrow);
    io.run();
    io.restart();
    return all;
  };
  live(3);  // all are connected, and know the scripts
  return live(pairs);
}

laps run_one(const distant_servers& servers, long pairs) {
  return run_holdfast(servers, pairs, [](client& c) { return c.mutex(name_of(0)); });
}
laps run_red(const distant_servers& servers, long pairs) {
  return run_holdfast(servers, pairs, [](client& c) { return c.red_lock(name_of(0)); });
}
laps run_multi(const distant_servers& servers, long pairs) {
  return run_holdfast(servers, pairs, [](client& c) {
    std::vector<mutex> all;
    for (int i = 0; i < many_names; ++i) all.push_back(c.mutex(name_of(i)));
    return multi_lock(all);
  });
}

/// What a red_lock sends to a server for a pair.
sequence red_pair(distant_servers& servers, std::size_t n) {
  const detail::lock_keys keys(detail::red_plain_lock, name_of(0));
  const auto field = field_of(0);
  const auto vote = detail::vote_text(servers.run(n), longest_ttl);
  sequence bytes(2);
  detail::red_plain_lock.acquire.make(keys, default_ttl, field).copy_for({}, &vote).append_to(bytes[0], false);
  detail::red_plain_lock.release.make(keys, field).append_to(bytes[1], false);
  return bytes;
}

laps run_bare(distant_servers& servers, long pairs) {
  std::vector<sequence> each;
  for (std::size_t n = 0; n < servers.size(); ++n) each.push_back(red_pair(servers, n));
  return bare_majority(servers.paths(), each, majority, pairs);
}

constexpr long pairs_of_a_round = 2'000;

void found(const distant_servers& servers) {
  asio::io_context io(1);
  client redis(io.get_executor(), servers.settings());
  asio::co_spawn(io, red_lock::initialise(redis), rethrow);
  io.run();
}

std::vector<finding> red(const plan& p) {
  distant_servers one(1), five(primaries);
  found(five);
  run_red(five, 1);  // they know the scripts
  const auto pairs = p.scaled(pairs_of_a_round);
  ways w;
  p.rounds("red-c1", [&] {
    w["red"].push_back(median(run_red(five, pairs)));
    w["one"].push_back(median(run_one(one, pairs)));
    w["bare"].push_back(median(run_bare(five, pairs)));
  });
  return {w.compare("red", "one"), w.compare("red", "bare")};
}

std::vector<finding> red_with_one_stopped(const plan& p) {
  distant_servers five(primaries);
  found(five);
  const auto pairs = p.scaled(pairs_of_a_round);
  ways w;
  p.rounds("red-stopped", [&] {
    w["alive"].push_back(quantile(0.99, run_red(five, pairs)));
    five.server(0).stop();
    w["stopped"].push_back(quantile(0.99, run_red(five, pairs)));
    five.server(0).cont();
  });
  return {w.compare("stopped", "alive")};
}

std::vector<finding> multi(const plan& p) {
  const distant_servers one(1);
  const auto pairs = p.scaled(pairs_of_a_round);
  ways w;
  p.rounds("multi-8", [&] {
    w["eight"].push_back(median(run_multi(one, pairs)));
    w["one"].push_back(median(run_one(one, pairs)));
  });
  return {w.compare("eight", "one")};
}

}  // namespace

std::vector<scenario> distant_scenarios() {
  return {{"red-c1",
           {{"red-c1", "p50 of a red_lock's pair on five servers, us / mutex on one", at_most(1.25)},
            {"red-c1/bare", "the same / bare client that sends the same to five", at_most(1.2)}},
           red},
          {"red-stopped",
           {{"red-stopped", "p99 of a red_lock's pair with one of five stopped, us / all alive", at_most(1.5)}},
           red_with_one_stopped},
          {"multi-8", {{"multi-8", "p50 of a multi_lock's pair of 8 names, us / one name", at_most(1.3)}}, multi}};
}

}  // namespace holdfast::bench
