// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "cli/server/lock_facts.hpp"

namespace holdfast::cli {

/// Pure: the locks that the page shows, as texts of JSON, and the changes that its readers get.
///
/// Decision: a lock is sent again if a fact of it has changed, or if its end has moved: a renewal. A TTL that only runs
/// down is no change; the page counts it down itself. A lock has a number here, because names may be any bytes.
class lock_board {
 public:
  using instant = std::chrono::steady_clock::time_point;
  static constexpr std::size_t most_shown = 20'000;
  static constexpr std::chrono::milliseconds least_move{250};  // of an end: readings are that inexact
  static constexpr std::chrono::seconds sample_time{5};
  static constexpr std::size_t most_samples = 120;  // ten minutes

  /// All locks. Returns the data of the event `change`; empty: nothing has changed.
  std::string replace(const std::map<std::string, lock_facts>& locks, instant now);
  /// One lock; null: it is free.
  std::string set(const std::string& name, const lock_facts* lock, instant now);
  /// The members of /api/locks: revision, locks, hidden, and the waiters of the last minutes.
  std::string snapshot(instant now) const;
  /// Gauges in the text format of Prometheus.
  std::string gauges() const;

 private:
  struct entry {
    std::uint64_t id = 0;
    lock_facts shape{};  // without TTLs
    std::vector<instant> ends{};
    std::string text{};  // of JSON
    instant read_at{};
  };
  struct changes {
    std::string changed, gone;
  };

  void put(const std::string& name, const lock_facts& lock, instant now, changes& made);
  std::string finish(const changes& made);
  void sample(instant now);

  std::map<std::string, entry> entries_;
  std::deque<long long> samples_;  // the most waiters in each sample time
  instant next_sample_{};
  std::uint64_t last_id_ = 0, revision_ = 0;
  std::size_t hidden_ = 0;
};

}  // namespace holdfast::cli
