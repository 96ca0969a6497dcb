// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>

#include "topology/topology.hpp"

namespace holdfast::detail {

/// Pure: the callers that wait for replicas, and the questions for them. One question is under way. A caller that comes
/// meanwhile goes with the next one: the present one does not cover what was executed after it. A question names the
/// key of one caller; the mark on that key takes the place in the stream of changes that replicas must reach.
class acknowledgements {
 public:
  using replica_demand = topology::replica_demand;
  using handler = topology::replicas_handler;
  /// WAIT for all present callers: their largest number of replicas, until just before their first deadline.
  struct question {
    unsigned replicas;
    time_point until;
    std::string key;
  };
  struct answer {
    handler to;
    std::optional<redis::failure> failed;
    unsigned had;
  };

  void add(std::string_view key, const replica_demand& wanted, handler done) {
    next_.push_back({std::string(key), wanted, std::move(done)});
  }
  bool idle() const noexcept { return asked_.empty() && next_.empty(); }
  /// The next question, if none is under way and a caller waits. It is under way from now on.
  std::optional<question> begin(time_point now);
  /// The server of this number has answered. A caller that wants more replicas, and has more time than the question
  /// had, waits on. The answer of another server, or of one without a run_id, counts for nothing: its replicas need not
  /// have the grant.
  std::vector<answer> end(const std::optional<redis::failure>& failed, unsigned had, std::uint64_t server,
                          time_point now);
  /// The key of the question took no mark, for this reason. Callers of that key get it, and the others ask next.
  std::vector<answer> refuse(const redis::failure& why);
  /// The first deadline of all callers.
  std::optional<time_point> next_deadline() const;
  /// Ends the callers whose deadline is over, without an answer.
  std::vector<answer> expire(time_point now);

 private:
  struct waiter {
    std::string key;
    replica_demand wanted;
    handler done;
  };

  bool under_way_ = false;
  std::vector<waiter> asked_, next_;
  time_point until_{};  // of the question under way
  std::string key_;     // of the same
};

}  // namespace holdfast::detail
