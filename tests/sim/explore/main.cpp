// SPDX-License-Identifier: BSL-1.0
// holdfast_explore [--delays N] [--faults N] [--depth N] [--paths N] [--violations N] [WORLD…]
//     searches these worlds, or all, or until so many were a violation, and prints the states and paths of each; fails
//     if a path is a violation
// holdfast_explore --check FILE
//     searches all, and fails if a world has other numbers than in the file, which says how to update it
// holdfast_explore --replay WORLD PLAN
//     lives one path and prints what happens
// holdfast_explore --list
//     prints the name and the meaning of each world
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sim/explore/abort_report.hpp"
#include "sim/explore/worlds.hpp"

namespace {

using namespace holdfast::sim::explore;

constexpr int exit_usage = 64;

struct options {
  std::optional<std::size_t> delays, faults, depth, paths, violations;
  std::string check;
  std::vector<std::string> names;
};

std::optional<std::size_t> number(std::string_view text) {
  std::size_t n = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
  return failed == std::errc() && end == text.data() + text.size() ? std::optional(n) : std::nullopt;
}

std::optional<options> parse(const std::vector<std::string>& words) {
  options made;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto& word = words[at];
    if (!word.starts_with("--")) {
      made.names.push_back(word);
      continue;
    }
    if (++at == words.size()) return std::nullopt;
    auto* const bound = word == "--delays"       ? &made.delays
                        : word == "--faults"     ? &made.faults
                        : word == "--depth"      ? &made.depth
                        : word == "--paths"      ? &made.paths
                        : word == "--violations" ? &made.violations
                                                 : nullptr;
    if (bound && (*bound = number(words[at]))) continue;
    if (word != "--check") return std::nullopt;
    made.check = words[at];
  }
  return made;
}

const setting* world_named(std::string_view name) {
  const auto found = std::ranges::find(all_worlds(), name, &setting::name);
  return found == all_worlds().end() ? nullptr : &*found;
}

int list() {
  for (const auto& each : all_worlds())
    std::cout << std::left << std::setw(22) << each.name << ' ' << each.about << '\n';
  return 0;
}

int replay_one(const std::string& name, const std::string& text) {
  const auto* of = world_named(name);
  const auto path = plan_of(text);
  if (!of || !path) {
    std::cerr << (of ? "no plan: " + text : "no world: " + name) << '\n';
    return exit_usage;
  }
  std::cout << std::unitbuf;  // an assertion that fails loses no line
  const auto end = replay([&](chooser& decides) { return live(*of, decides, &std::cout); }, *path);
  std::cout << name << ' ' << text
            << (end.violation.empty() ? ": no violation\n" : ": VIOLATION " + end.violation + "\n");
  return end.violation.empty() ? 0 : 1;
}

/// "STATES PATHS" of each world.
using counts = std::map<std::string, std::string>;

counts counts_in(const std::string& file) {
  counts all;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const auto space = line.find(' ');
    all[line.substr(0, space)] = line.substr(space + 1);
  }
  return all;
}

struct searched {
  search_result done;
  double seconds;
};

searched search(const setting& of, const options& within) {
  auto bounds = of.within;
  if (within.delays) bounds.delays = *within.delays;
  if (within.faults) bounds.faults = *within.faults;
  if (within.depth) bounds.depth = *within.depth;
  if (within.paths) bounds.paths = *within.paths;
  const auto begin = std::chrono::steady_clock::now();
  auto done = explore([&](chooser& decides) { return live_reported(of, decides); }, bounds);
  return {std::move(done), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

void print(const setting& of, const searched& found) {
  const auto& done = found.done;
  std::cout << std::left << std::setw(22) << of.name << std::right << std::setw(9) << done.states << " states"
            << std::setw(8) << done.paths << " paths" << std::setw(8) << done.cut << " cut" << std::setw(5)
            << done.deepest << " deep  " << std::fixed << std::setprecision(1) << found.seconds << " s"
            << (done.exhausted ? "" : ", not exhausted") << std::endl;
  for (const auto& each : done.found)
    std::cout << "  VIOLATION " << each.violation << "\n  replay: holdfast_explore --replay " << of.name << ' '
              << to_text(each.path) << std::endl;
}

bool are_as_committed(const counts& found, const std::string& file) {
  const auto committed = counts_in(file);
  if (found == committed) return true;
  for (const auto& [name, numbers] : found) {
    const auto known = committed.find(name);
    if (known == committed.end() || known->second != numbers)
      std::cout << name << ": " << numbers << " states and paths, and "
                << (known == committed.end() ? "none" : known->second) << " in " << file << '\n';
  }
  std::cout << "If the change explains the difference, put these lines into the file:\n";
  for (const auto& [name, numbers] : found) std::cout << name << ' ' << numbers << '\n';
  return false;
}

int run(const options& within) {
  for (const auto& name : within.names)
    if (!world_named(name)) {
      std::cerr << "no world: " << name << '\n';
      return exit_usage;
    }
  std::size_t violations = 0;
  counts found;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  const auto search_some = [&] {
    for (auto at = next++; at < all_worlds().size(); at = next++) {
      const auto& of = all_worlds()[at];
      if (!within.names.empty() && std::ranges::find(within.names, of.name) == within.names.end()) continue;
      const auto one = search(of, within);
      const std::lock_guard lock(mutex);
      print(of, one);
      found[std::string(of.name)] = std::to_string(one.done.states) + ' ' + std::to_string(one.done.paths);
      violations += one.done.found.size();
      if (within.violations && violations >= *within.violations) next = all_worlds().size();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned n = 0; n < std::max(1U, std::thread::hardware_concurrency()); ++n) threads.emplace_back(search_some);
  for (auto& each : threads) each.join();
  const bool good = within.check.empty() || are_as_committed(found, within.check);
  return good && violations == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "--list") return list();
  if (words.size() == 3 && words[0] == "--replay") return replay_one(words[1], words[2]);
  const auto within = parse(words);
  if (within) {
    report_aborts();
    return run(*within);
  }
  std::cerr << "usage: " << argv[0]
            << " [--delays N] [--faults N] [--depth N] [--paths N] [--violations N] [--check FILE] [WORLD…]"
               " | --replay WORLD PLAN | --list\n";
  return exit_usage;
}
