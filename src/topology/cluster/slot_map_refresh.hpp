// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/timers.hpp"
#include "redis/connection.hpp"
#include "redis/endpoint.hpp"
#include "redis/failure.hpp"
#include "redis/io_services.hpp"
#include "topology/cluster/slot_map.hpp"

namespace holdfast::detail {

/// Asks nodes of a cluster for the owners of the slots, one round at a time. At most one round begins in a second,
/// however many commands were moved.
///
/// In a round one node is asked after the other until an answer is enough. The next node is asked when one cannot be
/// reached, or is silent for 100 ms. The silent node may still answer.
///
/// Decision: nodes without a connection take turns at being the first of them (cluster::candidates). Otherwise a node
/// that was taken away, with an old but full map, would answer first each time. A node that has not joined yet knows no
/// slot. So while a call waits for the owner of its slot, a view with gaps is kept and the next node is asked.
class slot_map_refresh final {
 public:
  /// A node to ask in a round.
  struct candidate {
    std::shared_ptr<redis::connection> by;  // null: over a connection of its own
    redis::address at;
  };
  /// The judgement of an answer. Unless it is enough, another node is asked as well.
  enum class verdict { enough, too_little, refused };
  /// Gets the outages of the connections that questions have of their own.
  using outage_sink = std::function<void(const redis::address& node, const event&)>;
  struct owner {
    /// The nodes to ask, in this order. `round`: the number of rounds before this one.
    std::function<std::vector<candidate>(std::size_t round)> candidates;
    std::function<verdict(const slot_view&, const redis::address& source)> take;
    /// No node has given a map that was taken; the most telling cause.
    std::function<void(const redis::failure&)> failed;
    /// A round is over. True: another one is needed.
    std::function<bool()> over;
  };

  /// `endpoint`: to introduce ourselves.
  slot_map_refresh(const redis::io_services& services, const redis::endpoint& endpoint, reach_by reach,
                   std::chrono::milliseconds answer_timeout, outage_sink outages, owner callbacks);
  slot_map_refresh(const slot_map_refresh&) = delete;
  slot_map_refresh& operator=(const slot_map_refresh&) = delete;
  ~slot_map_refresh() { close(); }

  /// Begins a round as soon as it is allowed. A round under way serves this call, too.
  void ask();
  bool under_way() const noexcept { return round_ != nullptr; }
  /// No round has begun since `when`.
  bool quiet_since(time_point when) const noexcept { return begun_ < when; }
  void close();

 private:
  struct round;
  class question;

  void begin();
  void next();
  void heard(question& question, const redis::outcome& outcome);
  void disappointed(redis::failure why);
  void end();

  const redis::io_services services_;
  const redis::endpoint endpoint_;
  const reach_by reach_;
  const std::chrono::milliseconds answer_timeout_;
  const outage_sink outages_;
  const owner owner_;
  std::shared_ptr<round> round_;  // under way
  std::size_t rounds_ = 0;
  timer next_;  // under way: the next candidate; else the next round
  time_point begun_ = time_point::min();
  bool closed_ = false;
};

}  // namespace holdfast::detail
