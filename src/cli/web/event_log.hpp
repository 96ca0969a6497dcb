// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/json/object.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace holdfast::cli {

/// The last events, as texts of JSON. Each has a number and, in snapshot(), its age: readers know the time of day.
class event_log {
 public:
  using instant = std::chrono::steady_clock::time_point;
  static constexpr std::size_t most_events = 200;

  /// Sets `number`, and returns the text of the event.
  std::string add(boost::json::object event, instant now);
  /// A JSON array of {"age_ms", "event"}, the oldest first.
  std::string snapshot(instant now) const;

 private:
  struct entry {
    std::string text;
    instant at;
  };
  std::deque<entry> entries_;
  std::uint64_t number_ = 0;
};

}  // namespace holdfast::cli
