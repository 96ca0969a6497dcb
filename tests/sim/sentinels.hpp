// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/replication.hpp"
#include "testing/sim/trace.hpp"

namespace holdfast::sim {

/// Three sentinels, which watch one primary and its replicas, and put a replica in its place: when most of them have
/// not reached it for a while, or when somebody asks for it. They do not learn of it all at once; the old primary goes
/// on as one until they reach it, and for up to ten seconds more.
class sentinels {
 public:
  using member = replication::member;
  static constexpr std::size_t how_many = 3;

  struct times {
    nanoseconds down_after;        // unreachable for so long: down
    nanoseconds slowest_word;      // from a promotion until each of them knows
    nanoseconds longest_farewell;  // from when they reach an old primary until it is one no more
  };
  /// The last three of `all` are they; the first is the primary, the others its replicas.
  sentinels(scheduler& plan, std::deque<server>& all, replication& data, detail::random_source& random, trace& log,
            times t);

  static constexpr const char* watched = "mymaster";
  std::size_t servers() const noexcept { return all_.size() - how_many; }
  /// By the newest epoch.
  member primary() const noexcept { return primary_; }
  /// Something has become of a machine, or of the ways between them.
  void look();
  /// SENTINEL FAILOVER. False: there is no good replica, or there is one under way.
  bool fail_over();
  /// Most of them work, and each of these names the primary, which runs and is reached by the others. One that is cut
  /// off may still name another.
  bool settled() const;
  /// A replica becomes the primary. Both still have what they had.
  std::function<void(member from, member to)> on_promotion = [](member, member) {};

 private:
  struct view {
    std::uint64_t epoch = 0;
    member primary = 0;
    bool learns = false;
  };
  struct old_primary {
    member who;
    bool leaves = false;
  };

  reply answer(std::size_t which, const arguments&) const;
  reply description(std::size_t which) const;
  server& machine(std::size_t which) { return all_[servers() + which]; }
  const server& machine(std::size_t which) const { return all_[servers() + which]; }
  bool works(std::size_t which) const { return machine(which).running() && !data_.isolated(servers() + which); }
  bool reached(member m) const { return all_[m].running() && !data_.isolated(m); }
  std::size_t working() const;
  std::optional<member> candidate() const;
  void check_primary();
  void promote();
  void spread(bool with_leader);
  void learn(std::size_t which);
  void bring_in_line();

  scheduler& plan_;
  std::deque<server>& all_;
  replication& data_;
  detail::random_source& random_;
  trace& log_;
  const times times_;
  member primary_ = 0;
  std::uint64_t epoch_ = 0;
  std::vector<view> views_{how_many};
  std::vector<old_primary> old_;
  std::optional<time_point> missed_since_;
  bool failing_over_ = false;
};

}  // namespace holdfast::sim
