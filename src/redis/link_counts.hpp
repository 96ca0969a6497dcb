// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/observer.hpp>

#include "redis/endpoint.hpp"

namespace holdfast::redis {

/// Reports the connections of a link to the metrics: when each comes up, its commands in flight, and its end. Without
/// memory to report the beginning, the end is not reported either: no gauge stays up.
class link_counts {
 public:
  /// `metrics`: null if nothing is counted. It outlives this object.
  explicit link_counts(observer* metrics) noexcept : metrics_(metrics) {}
  link_counts(const link_counts&) = delete;
  link_counts& operator=(const link_counts&) = delete;

  void connection_up(std::string_view role, const endpoint& node) noexcept;
  /// The number of commands that were written and have no answer.
  void in_flight(std::size_t commands) {
    if (counted_ && commands != reported_in_flight_) report_in_flight(commands);
  }
  void connection_down() noexcept;
  /// The link leads to another server from now on.
  void forget() noexcept { known_ = nullptr; }

  /// The facts of the present or last connection, until forget(); null: there was none.
  const connection_facts* facts() const noexcept { return known_; }
  /// The number of connections until now.
  std::int64_t times_up() const noexcept { return times_up_; }

 private:
  void report_in_flight(std::size_t commands);

  observer* const metrics_;
  std::int64_t times_up_ = 0;
  std::string node_name_;
  connection_facts facts_;
  const connection_facts* known_ = nullptr;  // facts_, or null
  bool counted_ = false;                     // while it is up
  std::size_t reported_in_flight_ = 0;
};

}  // namespace holdfast::redis
