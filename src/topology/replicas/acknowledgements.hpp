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

/// Pure: who wants to know how many replicas have what a server has executed. One question is under way; whoever comes
/// meanwhile goes with the next one, because what was executed after it was put it does not cover. It names the
/// key of one who waits, and a mark on that key takes the place in the stream of changes that replicas must reach.
class acknowledgements {
 public:
  using copies = topology::copies;
  using handler = topology::copies_handler;
  /// WAIT, for all who wait now: so many replicas, until the first of them has hardly any time left.
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

  void add(std::string_view key, const copies& wanted, handler done) {
    next_.push_back({std::string(key), wanted, std::move(done)});
  }
  bool idle() const noexcept { return asked_.empty() && next_.empty(); }
  /// The next question, if none is under way and anybody waits: it is under way from now on.
  std::optional<question> begin(time_point now);
  /// It was answered by the server of this number. Who wants more replicas and has more time than the question had
  /// waits on. The word of another server counts for nothing, nor does that of one that does not say who it is: its
  /// replicas need not have it.
  std::vector<answer> end(const std::optional<redis::failure>& failed, unsigned had, std::uint64_t server,
                          time_point now);
  /// Its key took no mark, for this reason: whoever has named that key hears it, and the others are the next to ask.
  std::vector<answer> refuse(const redis::failure& why);
  /// When the time of the first of all waiters is over.
  std::optional<time_point> next_deadline() const;
  /// Ends the waiters whose time is over: whatever is under way, there was no answer.
  std::vector<answer> expire(time_point now);

 private:
  struct waiter {
    std::string key;
    copies wanted;
    handler done;
  };

  bool under_way_ = false;
  std::vector<waiter> asked_, next_;
  time_point until_{};  // of the question under way
  std::string key_;     // of the same
};

}  // namespace holdfast::detail
