// SPDX-License-Identifier: BSL-1.0
// Contention for a fair_mutex, beside the same tasks with a mutex, whose clients take turns.
#include <chrono>
#include <string>
#include <vector>

#include "bench/contest.hpp"
#include "bench/scenario.hpp"

namespace holdfast::bench {
namespace {

std::vector<finding> in_order(const plan& p, const std::string& name, int processes) {
  const std::chrono::milliseconds how_long(p.scaled(3'000) + 200);
  std::vector<double> rate, of_mutex, scripts, share;
  p.rounds(name, [&] {
    const auto r = run({.processes = processes, .turns = true, .fair = true}, how_long);
    rate.push_back(r.rate);
    scripts.push_back(r.scripts);
    share.push_back(r.least_share);
    of_mutex.push_back(run({.processes = processes, .turns = true}, how_long).rate);
  });
  const auto fair = median(rate), mutex = median(of_mutex);
  return {
      {fair / mutex, {{"fair", fair}, {"mutex", mutex}, {"rounds", rate.size()}}}, {median(scripts)}, {median(share)}};
}

scenario in_order_of(const std::string& name, int processes) {
  return {name,
          {{name + "/rate", "acquisitions/s / the same tasks with a mutex", at_least(0.75)},
           {name + "/scripts", "scripts / acquisition", at_most(3.2)},
           {name + "/share", "least waiter's share / fair", at_least(0.95)}},
          [=](const plan& p) { return in_order(p, name, processes); }};
}

}  // namespace

// Sixteen tasks, in two processes and in eight.
std::vector<scenario> fair_scenarios() { return {in_order_of("fair-2", 2), in_order_of("fair-8", 8)}; }

}  // namespace holdfast::bench
