// SPDX-License-Identifier: BSL-1.0
#include "sim/world.hpp"

#include <set>
#include <sstream>
#include <string>

#include "support/catch.hpp"

using namespace holdfast::sim;

namespace {

/// Verbs that clients call before all is wound up, counted by who reads what happened.
std::size_t acts_told_in(const std::string& trace) {
  static const std::set<std::string> verbs{"lock",
                                           "try_lock",
                                           "try_lock_for",
                                           "lock_any",
                                           "cancel",
                                           "try_lock_any",
                                           "try_lock_for_any",
                                           "unlock",
                                           "drop",
                                           "renew",
                                           "feed",
                                           "force_unlock",
                                           "ask",
                                           "lock_all",
                                           "try_lock_all",
                                           "try_lock_for_all",
                                           "set_permits",
                                           "downgrade",
                                           "try_set",
                                           "count_down",
                                           "count",
                                           "wait",
                                           "wait_for",
                                           "proclaim",
                                           "leader",
                                           "next"};
  std::istringstream lines(trace);
  std::size_t acts = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string time, who, what;
    words >> time >> who >> what;
    if (who == "world") break;
    acts += who.starts_with("client") && verbs.contains(what);
  }
  return acts;
}

}  // namespace

TEST_CASE("a seed lives the same life again, to the last bit, watched or not") {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    coverage met;
    const auto first = run_seed(seed, met);
    const auto again = run_seed(seed, met);
    std::ostringstream text;
    const auto watched = run_seed(seed, met, &text);
    CHECK(first.hash == again.hash);
    CHECK(first.hash == watched.hash);
    CHECK(text.str().size() > 10'000);
  }
}

TEST_CASE("another seed lives another life") {
  coverage met;
  CHECK(run_seed(1, met).hash != run_seed(2, met).hash);
}

TEST_CASE("a seed has three clients, two hundred acts and five faults at least") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    coverage met;
    std::ostringstream text;
    const auto v = run_seed(seed, met, &text);
    CHECK(v.violation.empty());
    CHECK(v.clients >= 3);
    CHECK(v.acts >= 200);
    if (seed % 20 != 15) CHECK(v.faults >= 5);
    CHECK(acts_told_in(text.str()) == v.acts);
  }
}

TEST_CASE("what a run never met is named") {
  coverage met;
  CHECK(met.missing().find("fault: server pause") != std::string::npos);
  met.hit("fault: server pause");
  CHECK(met.missing().find("fault: server pause") == std::string::npos);
}

TEST_CASE("what a run met and the list does not have is named") {
  coverage met;
  met.hit("fault: server pause");
  CHECK(met.unlisted().empty());
  met.hit("fault: earthquake");
  CHECK(met.unlisted() == "fault: earthquake");
}
