// SPDX-License-Identifier: BSL-1.0
// The uncontended pair, lock and unlock: what the library adds to the commands that it sends, and what its scripts cost
// the server.
#include <map>

#include "bench/baselines.hpp"
#include "bench/pairs.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"
#include "lua_scripts.hpp"
#include "protocol/fair/fair_lock.hpp"
#include "protocol/permits/permit_lock.hpp"
#include "protocol/shared/shared_lock.hpp"
#include "support/child_process.hpp"

namespace holdfast::bench {
namespace {

using test::real_redis;

/// All rounds of one way to do it.
struct ways : std::map<std::string, std::vector<pair_cost>> {
  double middle(const std::string& way, double pair_cost::*field) const {
    std::vector<double> values;
    for (const auto& round : at(way)) values.push_back(round.*field);
    return median(std::move(values));
  }
  /// `ours` ÷ `theirs`, with both beside it.
  finding compare(const std::string& ours, const std::string& theirs, double pair_cost::*field) const {
    const auto a = middle(ours, field), b = middle(theirs, field);
    return {a / b, {{ours, a}, {theirs, b}, {"rounds", at(ours).size()}}};
  }
};

constexpr int alone = 1, many = 256, most = 4096;  // pairs under way

std::vector<finding> c1(const plan& p, const real_redis& server) {
  const auto pairs = p.scaled(10'000);
  ways w;
  p.rounds("pair-c1", [&] {
    w["bare"].push_back(bare_pairs(server.socket_path(), alone, pairs, our_pair));
    w["holdfast"].push_back(holdfast_pairs(server.socket_path(), alone, pairs));
  });
  return {w.compare("holdfast", "bare", &pair_cost::p50_us)};
}

/// A plain thread asks the client's thread, and is woken by it: two switches of threads for each command.
std::vector<finding> plain_thread(const plan& p, const real_redis& server) {
  const auto pairs = p.scaled(5'000);
  ways w;
  p.rounds("pair-thread", 3, [&] {
    w["hiredis"].push_back(hiredis_pairs(server.socket_path(), pairs));
    w["holdfast"].push_back(blocking_mutex_pairs(server.socket_path(), pairs));
  });
  return {w.compare("holdfast", "hiredis", &pair_cost::p50_us)};
}

/// The bare client is no worse than redis-benchmark, which sends one command all the time: each of the two scripts.
std::vector<finding> bare_beside_redis_benchmark(const plan& p, const real_redis& server) {
  const auto times = p.scaled(20'000);
  std::map<std::string, std::vector<double>> rates;  // of a pair: both commands, one after the other
  p.rounds("baseline-c1", [&] {
    double bare = 0, benchmark = 0;  // seconds
    for (const auto& command : our_pair(0)) {
      bare += 1 / bare_pairs(server.socket_path(), alone, times, [&](int) { return sequence{command}; }).rate;
      benchmark += 1 / redis_benchmark_rate(server.socket_path(), command, times);
    }
    rates["bare"].push_back(1 / bare);
    rates["redis_benchmark"].push_back(1 / benchmark);
  });
  const auto bare = median(rates["bare"]), benchmark = median(rates["redis_benchmark"]);
  return {{bare / benchmark, {{"bare", bare}, {"redis_benchmark", benchmark}, {"rounds", rates["bare"].size()}}}};
}

std::string no_redis_benchmark() {
  return test::find_executable("redis-benchmark").empty() ? "no redis-benchmark in PATH" : "";
}

std::vector<finding> rate(const plan& p, const real_redis& server, const std::string& name, int width) {
  const auto pairs = p.scaled(100'000);
  ways w;
  p.rounds(name, [&] {
    w["blocking"].push_back(blocking_pairs(server.socket_path(), many, pairs));
    w["holdfast"].push_back(holdfast_pairs(server.socket_path(), width, pairs));
  });
  return {w.compare("holdfast", "blocking", &pair_cost::rate)};
}

std::vector<finding> new_names(const plan& p, const real_redis& server) {
  const auto pairs = p.scaled(100'000);
  ways w;
  p.rounds("names-100k", [&] {
    w["known"].push_back(holdfast_pairs(server.socket_path(), most, pairs));
    w["new"].push_back(holdfast_pairs(server.socket_path(), most, pairs, names::once_each));
  });
  return {w.compare("new", "known", &pair_cost::rate)};
}

/// A note costs one script more for each grant, and nobody waits for it.
std::vector<finding> notes(const plan& p, const real_redis& server) {
  const auto pairs = p.scaled(100'000);
  ways w;
  p.rounds("notes", [&] {
    w["off"].push_back(holdfast_pairs(server.socket_path(), many, pairs));
    w["on"].push_back(noted_pairs(server.socket_path(), many, pairs, "order 42, request 7f3a"));
  });
  return {w.compare("on", "off", &pair_cost::rate), w.compare("on", "off", &pair_cost::client_us)};
}

std::vector<finding> server_cpu(const plan& p, const real_redis& server) {
  const auto pairs = p.scaled(100'000);
  test::raw_client admin(server);
  const redisson_sequences redisson(admin);
  ways w;
  p.rounds("pair-server", [&] {
    w["ours"].push_back(bare_pairs(server.socket_path(), many, pairs, our_pair));
    w["redisson"].push_back(
        bare_pairs(server.socket_path(), many, pairs, [&](int slot) { return redisson.pair(slot); }));
    w["plain"].push_back(
        bare_pairs(server.socket_path(), many, pairs, [&](int slot) { return redisson.plain_pair(slot); }));
  });
  return {w.compare("ours", "redisson", &pair_cost::server_us), w.compare("ours", "plain", &pair_cost::server_us)};
}

/// A simple lock's pair, with one of the ways to acquire.
sequence simple_pair(int slot, decltype(detail::kind::acquire) by) {
  const auto name = name_of(slot);
  const detail::lock_keys keys(detail::simple_lock, name);
  const auto field = field_of(slot);
  std::string acquire, release;
  by.make(keys, default_ttl, field).append_to(acquire, false);
  detail::simple_lock.release.make(keys, field).append_to(release, false);
  return {std::move(acquire), std::move(release)};
}

std::vector<finding> simple_server_cpu(const plan& p, const real_redis& server) {
  const auto pairs = p.scaled(100'000);
  test::raw_client admin(server);
  for (const auto& script : {detail::lua::simple_acquire, detail::lua::simple_release})
    admin("SCRIPT", "LOAD", script.body);
  ways w;
  p.rounds("simple-server", [&] {
    w["plain"].push_back(bare_pairs(server.socket_path(), many, pairs, our_pair));
    for (const auto& [way, step] :
         {std::pair("set", detail::simple_lock.first_acquire), {"script", detail::simple_lock.acquire}})
      w[way].push_back(
          bare_pairs(server.socket_path(), many, pairs, [by = step](int slot) { return simple_pair(slot, by); }));
  });
  return {w.compare("set", "plain", &pair_cost::server_us), w.compare("script", "plain", &pair_cost::server_us)};
}

/// One permit of three. Its counter stays, so the name is no lock's.
sequence permit_pair(int slot) {
  const detail::permit_keys keys(detail::permit_lock, name_of(most + slot), {}, 3);
  const auto field = field_of(slot);
  std::string acquire, release;
  detail::permit_lock.acquire.make(keys, default_ttl, field).append_to(acquire, false);
  detail::permit_lock.release.make(keys, field).append_to(release, false);
  return {std::move(acquire), std::move(release)};
}

std::vector<finding> permit_server_cpu(const plan& p, const real_redis& server) {
  const auto pairs = p.scaled(100'000);
  test::raw_client admin(server);
  for (const auto& script : {detail::lua::permits_acquire, detail::lua::permits_release})
    admin("SCRIPT", "LOAD", script.body);
  ways w;
  // A client that counts lines would take each reply of a permit for three.
  p.rounds("permit-server", [&] {
    w["plain"].push_back(bare_pairs(server.socket_path(), many, pairs, our_pair, bare::commands));
    w["permit"].push_back(bare_pairs(server.socket_path(), many, pairs, permit_pair, bare::commands));
  });
  return {w.compare("permit", "plain", &pair_cost::server_us)};
}

/// Of a kind whose steps are all scripts.
sequence scripted_pair(const detail::kind& of, int slot) {
  const detail::lock_keys keys(of, name_of(slot));
  const auto field = field_of(slot);
  std::string acquire, release;
  of.acquire.make(keys, default_ttl, field).append_to(acquire, false);
  of.release.make(keys, field).append_to(release, false);
  return {std::move(acquire), std::move(release)};
}

std::vector<finding> shared_server_cpu(const plan& p, const real_redis& server) {
  const auto pairs = p.scaled(100'000);
  test::raw_client admin(server);
  for (const auto& script :
       {detail::lua::read_acquire, detail::lua::read_release, detail::lua::write_acquire, detail::lua::write_release})
    admin("SCRIPT", "LOAD", script.body);
  ways w;
  // A client that counts lines would take each reply for several.
  p.rounds("shared-server", [&] {
    w["plain"].push_back(bare_pairs(server.socket_path(), many, pairs, our_pair, bare::commands));
    for (const auto& [way, side] : {std::pair("read", &detail::shared_reader), {"write", &detail::shared_writer}})
      w[way].push_back(bare_pairs(
          server.socket_path(), many, pairs, [side = side](int slot) { return scripted_pair(*side, slot); },
          bare::commands));
  });
  return {w.compare("read", "plain", &pair_cost::server_us), w.compare("write", "plain", &pair_cost::server_us)};
}

std::vector<finding> fair_server_cpu(const plan& p, const real_redis& server) {
  const auto pairs = p.scaled(100'000);
  test::raw_client admin(server);
  for (const auto& script : {detail::lua::fair_acquire, detail::lua::fair_release})
    admin("SCRIPT", "LOAD", script.body);
  ways w;
  p.rounds("fair-server", [&] {
    w["plain"].push_back(bare_pairs(server.socket_path(), many, pairs, our_pair, bare::commands));
    w["fair"].push_back(bare_pairs(
        server.socket_path(), many, pairs, [](int slot) { return scripted_pair(detail::fair_lock, slot); },
        bare::commands));
  });
  return {w.compare("fair", "plain", &pair_cost::server_us)};
}

std::vector<finding> client_cpu(const plan& p, const real_redis& server) {
  const auto pairs = p.scaled(100'000);
  const hiredis_sequences hiredis(many);
  const auto by_hiredis = [&hiredis](int slot) { return hiredis.pair(slot); };
  ways w;
  p.rounds("pair-client", [&] {
    w["holdfast"].push_back(holdfast_pairs(server.socket_path(), many, pairs));
    w["bare"].push_back(bare_pairs(server.socket_path(), many, pairs, our_pair, bare::commands));
    w["hiredis"].push_back(bare_pairs(server.socket_path(), many, pairs, by_hiredis, bare::commands));
  });
  return {w.compare("holdfast", "bare", &pair_cost::client_us),
          w.compare("holdfast", "hiredis", &pair_cost::client_us)};
}

template <class Measure>
scenario pair_of(std::vector<bound> bounds, Measure measure) {
  return {bounds[0].target, bounds, [measure](const plan& p) {
            const real_redis server;
            load_scripts(server);
            return measure(p, server);
          }};
}

scenario baseline_c1() {
  auto s = pair_of({{"baseline-c1", "commands of a pair a second, bare client / redis-benchmark", at_least(0.9)}},
                   bare_beside_redis_benchmark);
  s.missing = no_redis_benchmark;
  return s;
}

scenario rate_of(const std::string& name, int width) {
  return pair_of({{name, "pairs a second / blocking loop of prepared bytes", at_least(0.95)}},
                 [=](const plan& p, const real_redis& server) { return rate(p, server, name, width); });
}

}  // namespace

std::vector<scenario> pair_scenarios() {
  return {
      baseline_c1(),
      pair_of({{"pair-c1", "p50 of a pair, us / bare client", at_most(1.05)}}, c1),
      pair_of({{"pair-thread", "p50 of a blocking::mutex's pair, us / blocking loop of hiredis", {}}}, plain_thread),
      rate_of("pair-c256", many),
      rate_of("pair-c4096", most),
      pair_of({{"names-100k", "names locked once, a second, 4096 at a time / names locked again", at_least(0.95)}},
              new_names),
      pair_of({{"notes", "pairs a second with config::notes / without", at_least(0.4)},
               {"notes/client", "client CPU of a pair, us, with config::notes / without", {}}},
              notes),
      pair_of({{"pair-server", "server CPU of a pair, us / Redisson's commands", at_most(0.65)},
               {"pair-server/plain", "server CPU of a pair, us / plain 3 + 4 calls", at_most(0.85)}},
              server_cpu),
      pair_of({{"simple-server", "server CPU of a simple lock's pair, us / the plain lock's", at_most(0.7)},
               {"simple-server/script", "the same where the script acquires", at_most(0.9)}},
              simple_server_cpu),
      pair_of({{"permit-server", "server CPU of a permit's pair, us / the plain lock's", at_most(2.4)}},
              permit_server_cpu),
      pair_of({{"shared-server/read", "server CPU of a shared mutex' read pair, us / the plain lock's", at_most(2.3)},
               {"shared-server/write", "the same of the write pair", at_most(2.1)}},
              shared_server_cpu),
      pair_of({{"fair-server", "server CPU of a fair lock's pair, us / the plain lock's", at_most(1.5)}},
              fair_server_cpu),
      pair_of({{"pair-client", "client CPU of a pair, us / bare client that formats with our writer", at_most(3.5)},
               {"pair-client/hiredis", "the same / bare client that formats with hiredis", at_most(3.5)}},
              client_cpu)};
}

}  // namespace holdfast::bench
