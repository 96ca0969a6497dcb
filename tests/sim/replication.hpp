// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "testing/sim/server.hpp"

namespace holdfast::sim {

/// Who follows whom among several servers, and what is on its way from primaries to replicas: it arrives in order,
/// after a lag. A replica that is new, or was cut off, or lags too far behind, is given all that its primary has.
class replication {
 public:
  using member = std::size_t;

  replication(scheduler& plan, std::deque<server>& all, detail::random_source& random);

  /// What it has beside its primary's data is gone as soon as it has these.
  void follow(member replica, member primary);
  /// With the data that it has.
  void lead(member);
  std::optional<member> primary_of(member m) const { return links_[m].primary; }
  std::vector<member> replicas_of(member) const;

  /// Nobody of the others reaches it, nor it them; clients may.
  void isolate(member m, bool on);
  bool isolated(member m) const { return links_[m].isolated; }
  /// It has all that its primary has written, except what is on its way.
  bool in_step(member m) const { return links_[m].in_step; }
  /// The machine of this primary is gone, and with it what it has not sent yet.
  void lose_what_is_on_its_way_from(member);
  /// The replica was down, and is up again.
  void resume(member);

  /// The longest that a write is on its way.
  nanoseconds lag{};

 private:
  struct link {
    std::optional<member> primary{};
    bool isolated = false, in_step = false;
    flow sends{};
    std::uint64_t epoch = 0;  // of this link: what was sent before does not count
    std::size_t on_its_way = 0;
    time_point last_arrives{};
    long long acknowledged = 0;
  };

  void send(member from);
  void send(member from, member to);
  void resynchronise(member);
  void try_to_resynchronise(member, std::uint64_t epoch);
  bool connected(member a, member b) const;
  std::vector<node::peer> followers_of(member) const;

  scheduler& plan_;
  std::deque<server>& all_;
  detail::random_source& random_;
  std::vector<link> links_;
};

}  // namespace holdfast::sim
