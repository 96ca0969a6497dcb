// SPDX-License-Identifier: BSL-1.0
// What does not depend on the machine's mood: instructions and requests for memory of a pair. Each is the difference of
// two runs of this program, a short and a long one, so that its start and end do not count.
#include "bench/client_cost.hpp"

#include <holdfast/metrics.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "bench/baselines.hpp"
#include "bench/counted_allocations.hpp"
#include "bench/pairs.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"
#include "support/child_process.hpp"
#include "support/temp_folder.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

constexpr int alone = 1, many = 256;  // pairs under way

struct quiet_observer final : observer {
  bool wants_ids() const noexcept override { return false; }
};

std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

struct job {
  const char* who;
  int width;
  std::string socket;
};

std::vector<std::string> command_for(const job& j, long pairs) {
  return {this_program(), "--pairs", j.who, std::to_string(pairs), std::to_string(j.width), j.socket};
}

/// What it prints.
std::string run(const std::vector<std::string>& command) {
  test::child_process child({.executable = command[0], .argv = command});
  child.close_input();
  const auto said = child.read_all(plan::patience);
  if (child.wait(5s) != 0) throw not_finished(command[0] + " failed: " + said);
  return said;
}

double mallocs(const job& j, long pairs) { return std::stod(run(command_for(j, pairs))); }

double instructions(const job& j, long pairs) {
  const test::temp_folder folder("holdfast-callgrind-");
  const auto log = folder.path() + "/log";
  std::vector<std::string> command{"valgrind", "--tool=callgrind", "--log-file=" + log,
                                   "--callgrind-out-file=" + folder.path() + "/out"};
  const auto what = command_for(j, pairs);
  command.insert(command.end(), what.begin(), what.end());
  run(command);
  std::ifstream file(log);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  constexpr std::string_view before = "Collected : ";
  const auto at = text.find(before);
  if (at == text.npos) throw not_finished("callgrind says " + text);
  return std::stod(text.substr(at + before.size()));
}

/// Of one more pair.
double each(const std::function<double(const job&, long)>& count, const job& j, const plan& p) {
  const auto few = p.scaled(2'000), several = p.scaled(6'000);
  return (count(j, several) - count(j, few)) / static_cast<double>(several - few);
}

std::vector<finding> beside_bare(const plan& p, const std::function<double(const job&, long)>& count) {
  const test::real_redis server;
  load_scripts(server);
  std::vector<finding> found;
  for (const int width : {many, alone}) {
    const auto of = [&](const char* who) { return each(count, {who, width, server.socket_path()}, p); };
    const auto ours = of("holdfast"), bare = of("bare");
    found.push_back({ours, {{"bare", bare}, {"ratio", ours / bare}}});
  }
  return found;
}

/// What it costs to count the events of a pair, beside an observer that is told as much and does nothing.
std::vector<finding> beside_nobody(const plan& p) {
  const test::real_redis server;
  load_scripts(server);
  const auto of = [&](const char* who) { return each(instructions, {who, many, server.socket_path()}, p); };
  const auto nobody = of("holdfast"), quiet = of("quiet"), counted = of("metrics");
  return {{(counted - quiet) / nobody, {{"metrics", counted}, {"quiet", quiet}, {"nobody", nobody}}},
          {(counted - nobody) / nobody, {}}};
}

std::string no_valgrind() { return test::find_executable("valgrind").empty() ? "no valgrind in PATH" : ""; }

}  // namespace

bool make_pairs(std::span<char* const> arguments) {
  if (arguments.size() != 4) return false;
  const std::string who = arguments[0], socket = arguments[3];
  const auto pairs = std::stol(arguments[1]);
  const auto width = std::stoi(arguments[2]);
  if (who == "holdfast")
    holdfast_pairs(socket, width, pairs);
  else if (who == "quiet")
    holdfast_pairs(socket, width, pairs, names::of_tasks, std::make_shared<quiet_observer>());
  else if (who == "idle")
    holdfast_pairs(socket, width, pairs, names::of_tasks, std::make_shared<observer>());
  else if (who == "metrics")
    holdfast_pairs(socket, width, pairs, names::of_tasks, std::make_shared<metrics>());
  else if (who == "named")
    holdfast_pairs(socket, width, pairs, names::of_tasks,
                   std::make_shared<metrics>(metrics::options{.lock_names = 512}));
  else if (who == "bare")
    bare_pairs(socket, width, pairs, our_pair, bare::commands);
  else
    return false;
  std::printf("%llu\n", static_cast<unsigned long long>(allocations()));
  return true;
}

std::vector<scenario> client_cost_scenarios() {
  return {{"pair-client/instructions",
           {{"pair-client/instructions", "instructions of the client for a pair, 256 at a time", at_most(13'500)},
            {"pair-client/instructions-c1", "the same, one at a time", at_most(16'000)}},
           [](const plan& p) { return beside_bare(p, instructions); },
           no_valgrind},
          {"observer-metrics",
           {{"observer-metrics", "instructions of metrics for a pair / of the pair without observer", at_most(0.03)},
            {"observer-metrics/all", "the same with what it takes to make the events", at_most(0.03)}},
           beside_nobody,
           no_valgrind},
          {"pair-client/mallocs",
           {{"pair-client/mallocs", "requests for memory of the client for a pair, 256 at a time", at_most(1)},
            {"pair-client/mallocs-c1", "the same, one at a time", at_most(1)}},
           [](const plan& p) { return beside_bare(p, mallocs); }}};
}

}  // namespace holdfast::bench
