// SPDX-License-Identifier: BSL-1.0
// Contention for one name, where clients race for each hold, and where they take turns. The ideal is one task that
// holds as often as it can without a lock.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "bench/contest.hpp"
#include "bench/redisson_jvm.hpp"
#include "bench/scenario.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

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
    ideal.push_back(ideal_rate(who.hold, how_long / 3));
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

/// The processes of Redisson without ours, and with all tasks.
crew alone_of(crew who) {
  who.processes = who.redissons;
  return who;
}

/// Both sides have as many processes and tasks. What is fair to one side is so to the other: within 0.75 and 1.25 both
/// have at least three quarters of their share.
std::vector<finding> beside(const plan& p, const std::string& name, crew who, std::chrono::milliseconds how_long) {
  std::vector<double> rate, ideal, commands, scripts, own, others, wait, own_wait, alone;
  const auto round = [&] {
    const auto r = run(who, how_long);
    rate.push_back(r.rate);
    if (who.jvm) alone.push_back(run(alone_of(who), how_long).rate);
    commands.push_back(r.commands);
    scripts.push_back(r.scripts);
    own.push_back(r.own_share);
    others.push_back((who.processes - (who.processes - who.redissons) * r.own_share) / who.redissons);
    wait.push_back(r.longest_wait * 1e3);
    own_wait.push_back(r.own_wait * 1e3);
    ideal.push_back(ideal_rate(who.hold, how_long / 3));
  };
  if (who.jvm)
    p.rounds(name, 3, round);  // a JVM is not warm before the time for rounds is over
  else
    p.rounds(name, round);
  std::vector<finding> found{{median(rate) / median(ideal)},
                             {median(commands)},
                             {median(scripts)},
                             {median(own)},
                             {median(others)},
                             {median(wait)},
                             {median(own_wait)}};
  if (who.jvm) found.push_back({median(rate) / median(alone)});
  return found;
}

/// The waits of ours end within three rounds of all tasks, and 100 ms.
scenario beside_redisson(const std::string& name, crew who, bool bounded,
                         std::chrono::milliseconds how_long = 3'200ms) {
  const auto if_bound = [bounded](limit l) { return bounded ? std::optional(l) : std::nullopt; };
  const double round_ms = who.all_tasks * std::chrono::duration<double, std::milli>(who.hold).count();
  std::vector<bound> bounds{
      {name + "/rate", "acquisitions/s / ideal", if_bound(at_least(0.70))},
      {name + "/commands", "commands / acquisition", {}},
      {name + "/scripts", "scripts / acquisition", if_bound(at_most(7))},
      {name + "/own-share", "share of our tasks / fair", if_bound(at_least(0.8))},
      {name + "/redissons-share", "share of Redisson's tasks / fair", if_bound(at_least(0.75))},
      {name + "/wait", "longest wait in ms", {}},
      {name + "/own-wait", "longest wait of our tasks in ms", if_bound(at_most(3 * round_ms + 100))}};
  if (who.jvm) {
    bounds.front().keeps.reset();  // the JVMs alone have less
    bounds.push_back({name + "/beside-alone", "acquisitions/s / Redisson's processes alone", at_least(1)});
  }
  return {name, bounds, [=](const plan& p) {
            return beside(p, name, who, std::chrono::milliseconds(p.scaled(how_long.count() - 200) + 200));
          }};
}

/// Whose holds take no time, beside one process of Redisson's protocol that has the lock for itself.
std::vector<finding> tight(const plan& p, const std::string& name, crew who) {
  const std::chrono::milliseconds how_long(p.scaled(2'000) + 200);
  std::vector<double> rate, baseline, share;
  p.rounds(name, [&] {
    const auto r = run(who, how_long);
    rate.push_back(r.rate);
    share.push_back(r.least_share);
    baseline.push_back(run({.processes = 1, .turns = false, .redissons = 1, .hold = 0us, .think = 0us}, how_long).rate);
  });
  return {{median(rate) / median(baseline),
           {{"holdfast", median(rate)}, {"redisson", median(baseline)}, {"rounds", rate.size()}}},
          {median(share)}};
}

scenario tight_of(const std::string& name, int processes, limit rate, limit share) {
  const crew who{.processes = processes, .turns = true, .hold = 0us, .think = 0us};
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
      beside_redisson("beside-redisson-1", {2, true, 1}, true),
      beside_redisson("beside-redisson-2", {4, true, 2}, true),
      beside_redisson("beside-redisson-4", {8, true, 4}, true),
      beside_redisson("beside-redisson-10ms", {.processes = 4, .turns = true, .redissons = 2, .hold = 10ms}, true, 6s),
      beside_redisson("beside-redisson-long", {.processes = 4, .turns = true, .redissons = 2, .hold = 50ms}, true, 12s),
      beside_redisson("beside-redisson-500ms", {.processes = 4, .turns = true, .redissons = 2, .hold = 500ms}, true,
                      60s),
      beside_redisson("beside-redisson-threads-1", {.processes = 2, .turns = true, .redissons = 1, .threads = true},
                      true),
      beside_redisson("beside-redisson-threads-2", {.processes = 4, .turns = true, .redissons = 2, .threads = true},
                      true),
      beside_redisson("beside-redisson-threads-4", {.processes = 8, .turns = true, .redissons = 4, .threads = true},
                      true),
      beside_redisson("beside-redisson-race", {2, false, 1}, false)};
}

std::vector<scenario> redisson_scenarios() {
  std::vector<scenario> all;
  for (const int each_side : {1, 2, 4}) {
    all.push_back(beside_redisson("beside-redisson-jar-" + std::to_string(each_side),
                                  {.processes = 2 * each_side, .turns = true, .redissons = each_side, .jvm = true},
                                  true));
    all.back().missing = redisson_jvm::missing;
  }
  return all;
}

}  // namespace holdfast::bench
