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

/// Asks nodes of a cluster who has which slot: one round at a time, and at most one begins in a second.
///
/// In a round one node is asked after the other until there is an answer that is enough. One that cannot be reached, or
/// does not answer at once, is not waited for before the next is asked, but may still answer.
class slot_map_refresh final {
 public:
  /// Whom to ask in a round, in this order.
  struct candidate {
    std::shared_ptr<redis::connection> by;  // null: over a connection of its own
    redis::address at;
  };
  /// What becomes of an answer. Unless it is enough, another node is to be asked as well.
  enum class verdict { enough, too_little, refused };
  /// Hears of an outage of a connection that a question has of its own.
  using outage_sink = std::function<void(const redis::address& node, const event&)>;
  struct owner {
    /// `round`: how many there were before.
    std::function<std::vector<candidate>(std::size_t quorum_call)> candidates;
    std::function<verdict(const slot_view&, const redis::address& said_by)> take;
    /// Nobody has given a map that was taken; why.
    std::function<void(const redis::failure&)> failed;
    /// A round is over. True: another one is needed.
    std::function<bool()> over;
  };

  /// `endpoint`: to introduce ourselves.
  slot_map_refresh(const redis::io_services& services, const redis::endpoint& endpoint, reach_by reach,
                   std::chrono::milliseconds answer_timeout, outage_sink outages, owner whose);
  slot_map_refresh(const slot_map_refresh&) = delete;
  slot_map_refresh& operator=(const slot_map_refresh&) = delete;
  ~slot_map_refresh() { close(); }

  /// As soon as it is allowed. What is asked while a round is under way, that round answers.
  void ask();
  bool under_way() const noexcept { return round_ != nullptr; }
  /// No round has begun for so long.
  bool quiet_since(time_point when) const noexcept { return begun_ < when; }
  void close();

 private:
  struct quorum_call;
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
  const owner whose_;
  std::shared_ptr<quorum_call> round_;  // under way
  std::size_t rounds_ = 0;
  timer next_;  // under way: the next candidate; else the next round
  time_point begun_ = time_point::min();
  bool closed_ = false;
};

}  // namespace holdfast::detail
