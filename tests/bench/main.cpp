// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <span>
#include <string_view>

#include "bench/client_cost.hpp"
#include "bench/scenario.hpp"
#include "bench/sweep.hpp"
#include "support/real_redis.hpp"

namespace {

using namespace holdfast::bench;

constexpr int exit_missed = 1, exit_usage = 64, exit_no_server = 69;

std::vector<scenario> all_scenarios(bool redisson = false) {
  std::vector<scenario> all;
  for (const auto family :
       {pair_scenarios, client_cost_scenarios, observer_scenarios, burst_scenarios, contention_scenarios,
        permit_scenarios, shared_scenarios, fair_scenarios, waiting_scenarios, push_scenarios, held_scenarios,
        page_scenarios, distant_scenarios, cluster_scenarios, replica_scenarios})
    std::ranges::move(family(), std::back_inserter(all));
  if (redisson) std::ranges::move(redisson_scenarios(), std::back_inserter(all));
  return all;
}

/// Says why, where one has to be left out.
bool can_be_measured(const scenario& s) {
  const auto why = s.missing ? s.missing() : "";
  if (!why.empty()) std::printf("skipped: %s: %s\n", s.name.c_str(), why.c_str());
  return why.empty();
}

void print_usage() {
  std::printf(
      "holdfast_bench [--only NAME] [--json] [--quick] [--redisson]\n"
      "Measures beside a baseline of the same run, on a server of its own; compare the ratios.\n"
      "  --only NAME  scenarios whose names, or one of their targets, begin so\n"
      "  --json       only the JSON lines, one for each bound\n"
      "  --quick      a hundredth of everything, once: shows that it works, measures nothing\n"
      "  --sweep      in place of all that: what docs/benchmarks.md draws, as JSON lines\n"
      "  --redisson   also beside-redisson-jar-*: Redisson itself, fetched with Maven, in a JVM (Java 17)\n"
      "Skipped where what they need is missing: baseline-c1 (redis-benchmark), pair-client/instructions (valgrind),\n"
      "held-10k/redlock (node, and npm to fetch it).\n"
      "Exit status 0: every bound is kept; %d: not every one.\nScenarios:",
      exit_missed);
  for (const auto& s : all_scenarios()) std::printf(" %s", s.name.c_str());
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  if (argc > 1 && arguments[1] == std::string_view("--pairs")) return make_pairs(arguments.subspan(2)) ? 0 : exit_usage;
  std::string_view only;
  bool json = false, quick = false, redisson = false, plots = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--json")
      json = true;
    else if (option == "--quick")
      quick = true;
    else if (option == "--redisson")
      redisson = true;
    else if (option == "--sweep")
      plots = true;
    else if (option == "--only" && i + 1 < argc)
      only = argv[++i];
    else
      return print_usage(), option == "--help" ? 0 : exit_usage;
  }
  auto chosen = all_scenarios(redisson);
  std::erase_if(chosen, [&](const scenario& s) { return !matches(s, only); });
  if (chosen.empty()) return print_usage(), exit_usage;
  if (!holdfast::test::real_redis::available()) {
    std::puts("skipped: no redis-server, valkey-server or redis-check-rdb in PATH");
    return exit_no_server;
  }
  std::erase_if(chosen, std::not_fn(can_be_measured));
  if (chosen.empty()) return exit_no_server;
  const auto say = [](const std::string& line) {
    std::puts(line.c_str());
    std::fflush(stdout);  // a row is seen when it is measured, also through a pipe
  };
  const plan p(quick);
  if (plots) return sweep(p, say), 0;
  std::vector<bound> rows;
  if (!json) say(table_head());
  for (const auto& s : chosen)
    for (auto& row : run(s, p)) {
      say(json ? json_line(row) : table_row(row));
      rows.push_back(std::move(row));
    }
  if (!json)
    for (const auto& row : rows) say(json_line(row));
  return std::ranges::all_of(rows, &bound::ok) ? 0 : exit_missed;
}
