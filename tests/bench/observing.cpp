// SPDX-License-Identifier: BSL-1.0
// What it costs that one can observe: of nobody, which is the default, and of an observer that does nothing.
#include <array>
#include <map>
#include <memory>

#include "bench/pairs.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"

namespace holdfast::bench {
namespace {

constexpr int alone = 1, many = 256;  // pairs under way

/// What a pair tells of itself. Where nobody is there to hear it, the event is not even made.
constexpr std::array told{event_kind::acquired, event_kind::released};

void tell(const config& settings, event_kind what) {
  if (settings.observer) settings.observer->on({.kind = what});
}

/// Of one pair's calls, in us.
double time_of_calls(const config& settings, long pairs) {
  const auto begun = clock::now();
  for (long i = 0; i < pairs; ++i)
    for (const auto what : told) {
      asm volatile("" : : "r"(&settings) : "memory");  // for the compiler, it may have another observer each time
      tell(settings, what);
    }
  return seconds_since(begun) * 1e6 / static_cast<double>(pairs);
}

std::vector<finding> observe(const plan& p) {
  const test::real_redis server;
  load_scripts(server);
  const auto path = server.socket_path();
  std::map<std::string, std::vector<double>> us;
  p.rounds("observer-null", [&] {
    us["calls"].push_back(time_of_calls(config(), p.scaled(10'000'000)));
    us["pair"].push_back(holdfast_pairs(path, alone, p.scaled(10'000)).p50_us);
    us["nobody"].push_back(holdfast_pairs(path, many, p.scaled(100'000)).client_us);
    const auto idle = std::make_shared<observer>();
    us["idle"].push_back(holdfast_pairs(path, many, p.scaled(100'000), names::of_tasks, idle).client_us);
  });
  const auto calls = median(us["calls"]), pair = median(us["pair"]);
  const auto nobody = median(us["nobody"]), idle = median(us["idle"]);
  return {{calls / pair, {{"calls_us", calls}, {"pair_us", pair}, {"rounds", us["pair"].size()}}},
          {idle / nobody, {{"idle_us", idle}, {"nobody_us", nobody}}}};
}

}  // namespace

std::vector<scenario> observer_scenarios() {
  return {{"observer-null",
           {{"observer-null", "time of a pair's calls of the default observer / of the pair, p50", at_most(0.01)},
            {"observer-null/idle", "client CPU of a pair with an observer that does nothing / without", {}}},
           observe}};
}

}  // namespace holdfast::bench
