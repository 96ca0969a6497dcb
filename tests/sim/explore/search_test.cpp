// SPDX-License-Identifier: BSL-1.0
#include "sim/explore/search.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "testing/sim/seeded_random.hpp"

using namespace holdfast::sim::explore;

namespace {

/// A process of a toy world is a list of steps, each with the objects that it changes.
using program = std::vector<objects>;

constexpr objects object_of_process(std::size_t process) { return objects(1) << (32 + process); }

std::string label_of(std::size_t process, std::size_t step) {
  return std::string(1, static_cast<char>('a' + process)) + std::to_string(step);
}

/// The next step of each process that is not at its end, and the process that it is of.
std::pair<std::vector<option>, std::vector<std::size_t>> next_steps(const std::vector<program>& all,
                                                                    const std::vector<std::size_t>& at) {
  std::pair<std::vector<option>, std::vector<std::size_t>> next;
  for (std::size_t process = 0; process < all.size(); ++process) {
    if (at[process] == all[process].size()) continue;
    next.first.push_back({label_of(process, at[process]), all[process][at[process]] | object_of_process(process)});
    next.second.push_back(process);
  }
  return next;
}

std::uint64_t number_of(const std::vector<std::size_t>& at) {
  std::uint64_t number = 0;
  for (const auto each : at) number = number * 16 + each;
  return number;
}

/// Lives the processes to their end. `on_end` gets the steps in their order.
world steps_of(const std::vector<program>& all, bool numbered,
               const std::function<void(const std::vector<option>&)>& on_end = nullptr) {
  return [&all, numbered, on_end](chooser& decides) {
    std::vector<std::size_t> at(all.size());
    std::vector<option> done;
    for (;;) {
      const auto [options, processes] = next_steps(all, at);
      if (options.empty()) break;
      const auto taken = decides.choose(options, numbered ? std::optional(number_of(at)) : std::nullopt);
      if (!taken) return path_end();
      done.push_back(options[*taken]);
      ++at[processes[*taken]];
    }
    if (on_end) on_end(done);
    return path_end();
  };
}

/// Equal for exactly those orders that differ by swaps of independent neighbours: of all of these it is the first.
std::string normal_form(std::vector<option> steps) {
  std::string text;
  while (!steps.empty()) {
    auto first = steps.end();
    for (auto each = steps.begin(); each != steps.end(); ++each) {
      const bool can_be_first =
          std::all_of(steps.begin(), each, [&](const auto& before) { return independent(before, *each); });
      if (can_be_first && (first == steps.end() || each->label < first->label)) first = each;
    }
    text += first->label;
    steps.erase(first);
  }
  return text;
}

std::vector<program> some_programs(holdfast::sim::seeded_random& random) {
  std::vector<program> all(3);
  for (auto& each : all)
    for (int step = 0; step < 3; ++step) each.push_back(objects(1) << random.next() % 4);
  return all;
}

/// Two processes add one to a number: they read it, and write what they have read plus one.
path_end lose_an_update(chooser& decides) {
  std::array<int, 2> read{}, step{};
  int number = 0;
  for (;;) {
    std::vector<option> options;
    std::vector<std::size_t> processes;
    for (std::size_t process = 0; process < 2; ++process) {
      if (step[process] == 2) continue;
      options.push_back({label_of(process, static_cast<std::size_t>(step[process])), 1});
      processes.push_back(process);
    }
    if (options.empty()) return {number == 2 ? "" : "an update is lost", true};
    const auto taken = decides.choose(options);
    if (!taken) return {};
    const auto process = processes[*taken];
    if (step[process]++ == 0)
      read[process] = number;
    else
      number = read[process] + 1;
  }
}

/// A waiter sleeps if it finds the lock taken. With `loses` a wake-up that comes before it sleeps is forgotten.
path_end wait_for_wake_up(chooser& decides, bool loses) {
  bool free = false, checked = false, asleep = false, woken = false, in = false;
  for (;;) {
    std::vector<option> options;
    if (!checked)
      options.push_back({"check", 1});
    else if (!asleep && !in)
      options.push_back({"sleep", 1});
    else if (asleep && woken)
      options.push_back({"wake", 1});
    if (!free) options.push_back({"release", 1});
    if (options.empty()) return {{}, in};
    const std::uint64_t state = (free ? 1U : 0U) + (checked ? 2U : 0U) + (asleep ? 4U : 0U) + (woken ? 8U : 0U);
    const auto taken = decides.choose(options, state);
    if (!taken) return {};
    const auto& label = options[*taken].label;
    if (label == "check") {
      checked = true;
      in = free;
    } else if (label == "sleep") {
      asleep = true;
    } else if (label == "wake") {
      in = true;
      asleep = false;
    } else {
      free = true;
      woken = loses ? asleep : true;
    }
  }
}

}  // namespace

TEST_CASE("a search lives each interleaving of independent counters once, or one of them where it reduces") {
  constexpr objects nothing = 0;
  const std::vector<program> two{program(3, nothing), program(3, nothing)};
  const std::vector<program> three{program(2, nothing), program(2, nothing), program(2, nothing)};
  const search_bounds all{.reduces = false};
  CHECK(explore(steps_of(two, false), all).paths == 20);    // 6! / (3! 3!)
  CHECK(explore(steps_of(three, false), all).paths == 90);  // 6! / (2! 2! 2!)
  CHECK(explore(steps_of(two, false)).paths == 1);
  CHECK(explore(steps_of(three, false)).paths == 1);
}

TEST_CASE("a search with numbered states visits each of them once") {
  const std::vector<program> two{program(3, 1), program(3, 1)};
  const auto found = explore(steps_of(two, true));
  CHECK(found.states == 15);  // 4 * 4, without the end
  CHECK(found.exhausted);
  CHECK(explore(steps_of(two, false)).paths == 20);
}

TEST_CASE("a search lives one path for each set of orders that differ by swaps of independent steps alone") {
  holdfast::sim::seeded_random random(1);
  for (int run = 0; run < 30; ++run) {
    const auto programs = some_programs(random);
    std::set<std::string> all;
    explore(steps_of(programs, false, [&](const auto& steps) { all.insert(normal_form(steps)); }), {.reduces = false});
    std::set<std::string> lived;
    const auto found = explore(steps_of(programs, false, [&](const auto& steps) { lived.insert(normal_form(steps)); }));
    CHECK(lived == all);
    CHECK(found.paths == all.size());
  }
}

TEST_CASE("two steps that read one object commute, and a step that changes it commutes with neither") {
  const option reads{.label = "r", .changes = 1, .reads = 4}, also_reads{.label = "s", .changes = 2, .reads = 4};
  const option changes{.label = "c", .changes = 4};
  CHECK(independent(reads, also_reads));
  CHECK_FALSE(independent(reads, changes));
  CHECK_FALSE(independent(changes, reads));
}

TEST_CASE("a search that reduces visits each state of a world with numbered states") {
  holdfast::sim::seeded_random random(2);
  for (int run = 0; run < 30; ++run) {
    const auto programs = some_programs(random);
    CHECK(explore(steps_of(programs, true)).states == 63);  // 4 * 4 * 4, without the end
  }
}

TEST_CASE("a search finds the order in which an update is lost, and its plan leads there again") {
  const auto found = explore(lose_an_update);
  REQUIRE(found.found.size() == 1);
  CHECK(found.found[0].violation == "an update is lost");
  CHECK_FALSE(found.exhausted);
  const auto text = to_text(found.found[0].path);
  const auto path = plan_of(text);
  REQUIRE(path);
  std::string order;
  CHECK(replay(lose_an_update, *path, [&](const auto& each) { order += each.label; }).violation == "an update is lost");
  CHECK(order == "a0b0a1b1");
}

TEST_CASE("a search goes on after a counter-example, to as many as are wanted") {
  const auto found = explore(lose_an_update, {.counter_examples = 10});
  CHECK(found.found.size() == 4);
  CHECK(found.paths == 6);
  CHECK(found.exhausted);
}

TEST_CASE("a path has no more acts, delays and faults than the bounds allow") {
  const auto lives = [](chooser& decides) {
    std::size_t acts = 0, faults = 0;
    for (std::size_t step = 0; step < 3; ++step) {
      const auto number = std::to_string(step);
      const auto taken = decides.choose(
          {{"step" + number}, {"act" + number, 1, option_kind::act}, {"fault" + number, 1, option_kind::fault}});
      if (!taken) return path_end();
      acts += *taken == 1;
      faults += *taken == 2;
    }
    return path_end{acts > 2 || faults > 1 ? "too many" : "", true};
  };
  const auto within = explore(lives, {.acts = 2, .faults = 1});
  CHECK(within.found.empty());
  CHECK(within.paths == 1 + 3 + 3 + 3 + 6 + 3);  // by acts and faults: 00, 10, 20, 01, 11, 21
  const auto delayed = [](chooser& decides) {
    for (std::size_t step = 0; step < 3; ++step)
      if (!decides.choose({{"step" + std::to_string(step)}, {"wait" + std::to_string(step), 1, option_kind::delay}}))
        break;
    return path_end();
  };
  CHECK(explore(delayed, {.delays = 1}).paths == 1 + 3);
  CHECK(explore(lives, {.acts = 2}).found.size() == 1);
  CHECK(explore(lives, {.faults = 1}).found.size() == 1);
}

TEST_CASE("after the depth that is searched a path goes on by first options") {
  const std::vector<program> two{program(3, 1), program(3, 1)};
  std::vector<std::string> ends;
  const auto found =
      explore(steps_of(two, false, [&](const auto& steps) { ends.push_back(normal_form(steps)); }), {.depth = 1});
  CHECK(ends == std::vector<std::string>{"a0a1a2b0b1b2", "b0a0a1a2b1b2"});
  CHECK(found.deepest == 1);
}

TEST_CASE("a search that may live no more paths says that it is not exhausted") {
  const std::vector<program> two{program(3, 1), program(3, 1)};
  const auto found = explore(steps_of(two, false), {.paths = 7});
  CHECK(found.paths == 7);
  CHECK_FALSE(found.exhausted);
}

TEST_CASE("a search finds the state from which no continuation lets a waiter in") {
  const auto loses = [](chooser& decides) { return wait_for_wake_up(decides, true); };
  const auto keeps = [](chooser& decides) { return wait_for_wake_up(decides, false); };
  const search_bounds live{.judges_liveness = true};
  CHECK(explore(keeps, live).found.empty());
  const auto found = explore(loses, live).found;
  REQUIRE(found.size() == 1);
  std::string order;
  replay(loses, found[0].path, [&](const auto& each) { order += each.label + ' '; });
  CHECK(order == "check release sleep ");  // the wake-up came between the two
}

TEST_CASE("a world that is another one when it is lived again is refused") {
  int lives = 0;
  const auto changes = [&](chooser& decides) {
    const auto number = std::to_string(lives++);
    decides.choose({{"a" + number}, {"b" + number}});
    return path_end();
  };
  CHECK_THROWS_AS(explore(changes), std::logic_error);
}

TEST_CASE("a plan is written shortly, and read again") {
  CHECK(to_text({}) == "-");
  CHECK(to_text({0, 0, 0}) == "-");
  CHECK(to_text({0, 0, 7, 2, 2, 1, 0}) == "0*2.7.2*2.1");
  CHECK(plan_of("0*2.7.2*2.1") == plan{0, 0, 7, 2, 2, 1});
  CHECK(plan_of("-") == plan{});
  for (const auto* text : {"", ".", "1.", "1*", "*2", "x", "1.-", "1*99999999999"}) CHECK_FALSE(plan_of(text));
}
