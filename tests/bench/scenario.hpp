// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report.hpp"

namespace holdfast::bench {

/// How much to measure.
class plan {
 public:
  static constexpr int most_rounds = 7;
  static constexpr std::chrono::seconds enough{15};  // no round begins after that: all of it takes a quarter of an hour
  static constexpr std::chrono::seconds patience{90};  // work that takes longer is ended: "not finished"

  /// `quick`: one round of a hundredth: shows that the bench works, measures nothing.
  explicit plan(bool quick) : quick_(quick) {}

  long scaled(long count) const { return quick_ ? (count + 99) / 100 : count; }

  /// Calls `round` until there were enough, and tells of each on stderr.
  template <class Round>
  void rounds(const std::string& name, Round round) const {
    const auto begun = std::chrono::steady_clock::now();
    const int most = quick_ ? 1 : most_rounds;
    for (int i = 1; i <= most && (i == 1 || std::chrono::steady_clock::now() - begun < enough); ++i) {
      std::fprintf(stderr, "%s: round %d of at most %d\n", name.c_str(), i, most);
      round();
    }
  }
  /// The same with just so many, however long they take; one if it is quick.
  template <class Round>
  void rounds(const std::string& name, int times, Round round) const {
    for (int i = 1; i <= (quick_ ? 1 : times); ++i) {
      std::fprintf(stderr, "%s: round %d\n", name.c_str(), i);
      round();
    }
  }

 private:
  bool quick_;
};

/// What was found for one bound.
struct finding {
  double value = 0;
  figures made_of{};
};

/// Thrown out of a round that did not come to a good end, with what was seen of it.
struct not_finished : std::runtime_error {
  explicit not_finished(const std::string& why, figures seen = {})
      : runtime_error("not finished: " + why), seen(std::move(seen)) {}
  figures seen;
};

/// Something to measure beside its baseline, and what it is held to.
struct scenario {
  std::string name;
  std::vector<bound> bounds;                                   // without values
  std::function<std::vector<finding>(const plan&)> measure{};  // one for each bound, in their order; may throw
  std::function<std::string()> missing{};                      // why it cannot be measured here; empty if it can
};

/// Whether its name, or one of its targets, begins so.
bool matches(const scenario&, std::string_view beginning);

/// Its bounds with their values; or without, and with the reason, if it throws.
std::vector<bound> run(const scenario&, const plan&);

// One file for each family.
std::vector<scenario> pair_scenarios();
std::vector<scenario> client_cost_scenarios();
std::vector<scenario> observer_scenarios();
std::vector<scenario> burst_scenarios();
std::vector<scenario> contention_scenarios();
std::vector<scenario> permit_scenarios();
std::vector<scenario> shared_scenarios();
std::vector<scenario> fair_scenarios();
std::vector<scenario> waiting_scenarios();
std::vector<scenario> push_scenarios();
std::vector<scenario> held_scenarios();
std::vector<scenario> page_scenarios();
std::vector<scenario> distant_scenarios();
std::vector<scenario> cluster_scenarios();
std::vector<scenario> replica_scenarios();
/// With Redisson itself, which has to be fetched.
std::vector<scenario> redisson_scenarios();

}  // namespace holdfast::bench
